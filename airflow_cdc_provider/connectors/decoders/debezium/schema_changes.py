"""What a new schema in the messages of a table says of rows that no message tells. Pure.

A statement that rewrites or relabels rows writes no event; the next message comes with another schema. What that
schema does not show at all (``ALTER … TYPE … USING`` of one type, say) is listed in docs/guides/event-feeds.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.debezium.semantics import (
    ALLOWED,
    LENGTH,
    TIME,
    Semantic,
    logical_type,
    of_native,
)
from airflow_cdc_provider.core.table.schema import Column

FINER: Mapping[str, Collection[str]] = {
    f"{TIME}Time": (f"{TIME}MicroTime", f"{TIME}NanoTime"),
    f"{TIME}MicroTime": (f"{TIME}NanoTime",),
    f"{TIME}Timestamp": (f"{TIME}MicroTimestamp", f"{TIME}NanoTimestamp"),
    f"{TIME}MicroTimestamp": (f"{TIME}NanoTimestamp",),
}
"""Meanings that hold every value of another one."""


def unlogged_changes(
    before: Sequence[Column], after: Sequence[Column], defaults: Collection[str] = ()
) -> Iterator[str]:
    """``before``: the columns of the messages, or of the copy, so far; ``after``: those of the new schema.
    ``defaults``: columns among them that have a default value. Columns that went, or have another logical type, are the
    business of ``core.evolution``."""
    held = {column.name: column for column in before if not column.text_of}
    told = {column.name: column for column in after}
    if moved := [old for old, new in zip(*_common_orders(held, told), strict=True) if old != new]:
        yield f"columns {', '.join(moved)} changed places or names"
    for name, column in told.items():
        if name in held:
            yield from _other_values(held[name], column)
        elif name in defaults or not column.nullable:
            yield f"rows older than column {name} hold a value that the feed does not tell"


def _common_orders(held: Mapping[str, Column], told: Mapping[str, Column]) -> tuple[list[str], list[str]]:
    return [name for name in held if name in told], [name for name in told if name in held]


def _other_values(before: Column, after: Column) -> Iterator[str]:
    old, new = of_native(before.native), of_native(after.native)
    if old is None or new is None or logical_type(old) != logical_type(new):
        return
    if gone := [label for label in old.labels if new.labels and label not in new.labels]:
        yield f"column {before.name} lost the labels {', '.join(gone)}"
    elif not _keeps_values(old, new):
        yield f"column {before.name} changed from {before.native} to {after.native}"


def _keeps_values(old: Semantic, new: Semantic) -> bool:
    if (old.type, new.type) == ("int8", "int16") or new.name in FINER.get(old.name, ()):
        return True
    if (old.number(LENGTH) or 0) > (new.number(LENGTH) or 0):
        return False
    return _apart_from_sizes(old) == _apart_from_sizes(new)


def _apart_from_sizes(semantic: Semantic) -> Semantic:
    return replace(semantic, parameters=tuple(one for one in semantic.parameters if one[0] not in (LENGTH, ALLOWED)))
