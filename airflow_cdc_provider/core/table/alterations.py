"""How a target table follows a schema change in place. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange


class Alter(StrEnum):
    """``set_null``: remove the values of a column, which stays."""

    RENAME = "rename"
    WIDEN = "widen"
    DROP = "drop"
    SET_NULL = "set_null"
    COMMENT = "comment"


@dataclass(frozen=True)
class Alteration:
    """One column of the target. ``column``: as the target has it, after the alterations before this one; ``to``: its
    new name or type, None for ``drop`` and ``set_null``. ``in_key``: the column belongs to the key. ``comment``: its
    new comment, empty to remove it."""

    kind: Alter
    column: Column
    to: Column | None = None
    in_key: bool = False
    comment: str = ""


def alterations(
    changes: Iterable[SchemaChange], key: Iterable[str], on_drop: Alter | None
) -> tuple[Alteration, ...] | None:
    """The alterations for changes that keep every value, in their order. Added columns are not among them: the commit
    that needs a column adds it. ``key``: of the later schema. ``on_drop``: None if dropped columns stay as they are.
    None if columns exchange their names."""
    in_key, changes = frozenset(key), tuple(changes)
    dropped = [change.before for change in changes if change.kind is ChangeKind.DROP_COLUMN and change.before]
    renamed = _in_order(
        [
            (change.before, change.after)
            for change in changes
            if change.kind is ChangeKind.RENAME and change.before and change.after
        ]
    )
    if renamed is None:
        return None
    widened = [
        (change.before, change.after)
        for change in changes
        if change.kind is ChangeKind.WIDEN and change.before and change.after
    ]
    return (
        *(Alteration(on_drop, column) for column in dropped if on_drop),
        *(Alteration(Alter.RENAME, before, after, after.name in in_key) for before, after in renamed),
        *(Alteration(Alter.WIDEN, before, after, after.name in in_key) for before, after in widened),
    )


def _in_order(renamed: list[tuple[Column, Column]]) -> list[tuple[Column, Column]] | None:
    """Each new name is free when its rename is executed. None if there is no such order."""
    remaining, ordered = list(renamed), list[tuple[Column, Column]]()
    while remaining:
        taken = {before.name for before, _ in remaining}
        free = next((pair for pair in remaining if pair[1].name not in taken), None)
        if free is None:
            return None
        remaining.remove(free)
        ordered.append(free)
    return ordered


def altered(schema: TableSchema, done: Iterable[Alteration]) -> TableSchema:
    """The schema of a copy after alterations. A column without its values belongs to it no more."""
    columns, key = {column.name: column for column in schema.columns}, list(schema.key)
    for alteration in done:
        name, to = alteration.column.name, alteration.to
        if to is None:
            del columns[name]
            continue
        column = replace(columns[name], name=to.name, type=to.type, native=to.native, id=to.id)
        columns = {
            column.name if old == name else old: column if old == name else kept for old, kept in columns.items()
        }
        key = [to.name if part == name else part for part in key]
    return replace(schema, columns=tuple(columns.values()), key=tuple(key))
