"""Detects unlogged changes from a new schema in the messages of a table. Pure.

A statement that rewrites rows writes no events, but the next message has another schema. Changes that the schema does
not show (as ``ALTER … TYPE … USING`` with the same type) are listed in docs/guides/event-feeds.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.debezium.semantics import (
    ALLOWED,
    LENGTH,
    TIME,
    Semantic,
    from_native,
    logical_type,
)
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.schema_changes import same_columns

FINER: Mapping[str, Collection[str]] = {
    f"{TIME}Time": (f"{TIME}MicroTime", f"{TIME}NanoTime"),
    f"{TIME}MicroTime": (f"{TIME}NanoTime",),
    f"{TIME}Timestamp": (f"{TIME}MicroTimestamp", f"{TIME}NanoTimestamp"),
    f"{TIME}MicroTimestamp": (f"{TIME}NanoTimestamp",),
}
"""Semantic type → types that can store all its values."""


def unlogged_changes(
    old_columns: Sequence[Column], new_columns: Sequence[Column], defaults: Collection[str] = (), in_order: bool = True
) -> Iterator[str]:
    """Descriptions of the unlogged changes. ``old_columns``: of previous messages, or of the copy. ``defaults``: new
    columns with a default value. ``in_order``: the old columns have the order of messages, and not that of a
    declaration. Other changes of the columns are handled by ``core.table.schema_changes``."""
    known = [column for column in old_columns if not column.text_of]
    same = same_columns(known, new_columns)
    former = {same[column.name]: column for column in known if column.name in same}
    pairs = zip(former, [column.name for column in new_columns if column.name in former], strict=True)
    if in_order and (moved := [former[before].name for before, after in pairs if before != after]):
        yield f"columns {', '.join(moved)} changed positions or names"
    for column in new_columns:
        if column.name in former:
            yield from _changed_values(former[column.name], column)
        elif column.name in defaults or not column.nullable:
            yield f"rows older than column {column.name} have a value in it that the feed does not contain"


def _changed_values(old_column: Column, new_column: Column) -> Iterator[str]:
    old, new = from_native(old_column.native), from_native(new_column.native)
    if old is None or new is None or logical_type(old) != logical_type(new):
        return
    if removed := [label for label in old.labels if new.labels and label not in new.labels]:
        yield f"column {old_column.name} lost the labels {', '.join(removed)}"
    elif not _keeps_values(old, new):
        yield f"column {old_column.name} changed from {old_column.native} to {new_column.native}"


def _keeps_values(old: Semantic, new: Semantic) -> bool:
    if (old.type, new.type) == ("int8", "int16") or new.name in FINER.get(old.name, ()):
        return True
    if (old.number(LENGTH) or 0) > (new.number(LENGTH) or 0):
        return False
    return _without_sizes(old) == _without_sizes(new)


def _without_sizes(semantic: Semantic) -> Semantic:
    return replace(semantic, parameters=tuple(item for item in semantic.parameters if item[0] not in (LENGTH, ALLOWED)))
