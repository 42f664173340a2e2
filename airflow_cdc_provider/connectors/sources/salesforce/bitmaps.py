"""Field bitmaps of a change event. Pure.

An element of ``changedFields``, ``nulledFields`` or ``diffFields`` is ``0x<hex>``, where bit i stands for field i of
the event's own schema (field 0 is the header), or ``<p>-0x<hex>``, where bit i stands for member i of compound field p.
Either kind may be missing, leading zeros are allowed, and there may be more than 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError

ELEMENT = re.compile(r"(?:(\d{1,5})-)?0x([0-9A-Fa-f]*)", re.ASCII)


@dataclass(frozen=True)
class FieldBitmap:
    """``fields``: indexes of whole fields, ascending. ``members``: index of a compound field -> indexes of its
    members."""

    fields: tuple[int, ...] = ()
    members: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields or self.members)


def parse_bitmap(elements: Sequence[str]) -> FieldBitmap:
    """Raises DecodeError if an element has neither form, or two elements are for the same field."""
    bitmaps: dict[int | None, int] = {}
    for element in elements:
        match = ELEMENT.fullmatch(element)
        if match is None:
            raise DecodeError("an element of a field bitmap is not of the form [index-]0xHEX")
        index = None if match[1] is None else int(match[1])
        if index in bitmaps:
            raise DecodeError("two elements of a field bitmap are for the same field")
        bitmaps[index] = int(match[2] or "0", 16)
    fields = tuple(_set_bits(bitmaps.pop(None, 0)))
    members = {index: tuple(_set_bits(bits)) for index, bits in bitmaps.items() if index is not None and bits}
    return FieldBitmap(fields, members)


def _set_bits(number: int) -> Iterator[int]:
    index = 0
    while number:
        if number & 1:
            yield index
        number >>= 1
        index += 1
