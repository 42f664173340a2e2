"""Which fields a change event names. Pure.

An element of ``changedFields``, ``nulledFields`` or ``diffFields`` is ``0x<hex>``, where bit i stands for field i of
the event's own schema (field 0 is the header), or ``<p>-0x<hex>``, where bit i stands for member i of compound field p.
Either kind may be missing, leading zeros mean nothing, and there may be more than 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError

ELEMENT = re.compile(r"(?:(\d{1,5})-)?0x([0-9A-Fa-f]*)", re.ASCII)


@dataclass(frozen=True)
class Marked:
    """Places of whole fields, ascending, and per compound field the places of its members."""

    fields: tuple[int, ...] = ()
    members: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields or self.members)


def marked(elements: Sequence[str]) -> Marked:
    """Raises DecodeError where an element is of neither form, or two speak of one field."""
    tops: dict[int | None, int] = {}
    for element in elements:
        shape = ELEMENT.fullmatch(element)
        if shape is None:
            raise DecodeError("an element of a field bitmap is not of the form [place-]0xHEX")
        place = None if shape[1] is None else int(shape[1])
        if place in tops:
            raise DecodeError("two elements of a field bitmap speak of the same field")
        tops[place] = int(shape[2] or "0", 16)
    fields = tuple(_bits(tops.pop(None, 0)))
    return Marked(fields, {place: tuple(_bits(bits)) for place, bits in tops.items() if place is not None and bits})


def _bits(number: int) -> Iterator[int]:
    place = 0
    while number:
        if number & 1:
            yield place
        number >>= 1
        place += 1
