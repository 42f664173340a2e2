"""The changes between two schemas of a table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

WIDER: dict[Kind, frozenset[Kind]] = {
    Kind.INT16: frozenset({Kind.INT32, Kind.INT64}),
    Kind.INT32: frozenset({Kind.INT64}),
    Kind.FLOAT32: frozenset({Kind.FLOAT64}),
    Kind.DATE: frozenset({Kind.TIMESTAMP}),
}


class ChangeKind(StrEnum):
    """``narrow``: any change of a type that may lose values. ``rename``: of a column, or a column that may have been
    renamed. ``change_key``: other columns identify a row. ``truncate``: all rows leave the table at once."""

    ADD_COLUMN = "add_column"
    DROP_COLUMN = "drop_column"
    WIDEN = "widen"
    NARROW = "narrow"
    RENAME = "rename"
    CHANGE_KEY = "change_key"
    TRUNCATE = "truncate"


@dataclass(frozen=True)
class SchemaChange:
    """``before``: the column in the earlier schema; ``after``: in the later one. A ``rename`` without both, or a
    ``change_key``, is described by ``detail``."""

    kind: ChangeKind
    before: Column | None = None
    after: Column | None = None
    detail: str = ""

    @property
    def is_certain(self) -> bool:
        """False for columns that may have been renamed, or dropped while others were added."""
        return self.kind is not ChangeKind.RENAME or (self.before is not None and self.after is not None)

    def __str__(self) -> str:
        before, after = self.before, self.after
        match self.kind:
            case ChangeKind.ADD_COLUMN if after:
                return f"column {after.name} {after.type} was added"
            case ChangeKind.DROP_COLUMN if before:
                return f"column {before.name} was dropped"
            case ChangeKind.RENAME if before and after:
                return f"column {before.name} was renamed to {after.name}"
            case ChangeKind.WIDEN | ChangeKind.NARROW if before and after:
                return f"column {after.name} changed from {before.type} to {after.type}"
            case _:
                return self.detail


def compare(old: TableSchema, new: TableSchema, renamed: Mapping[str, str] | None = None) -> tuple[SchemaChange, ...]:
    """The changes from ``old`` to ``new``: renames first, then types, dropped and added columns, and the key.

    Columns are the same if their ids are, or if they have no ids and the same name. The name of a column without an id
    may be the id of a later one. ``renamed``: old name → new name,
    for columns without ids, as an operator has decided. Without ids, columns that are dropped while others are added
    may be renamed: that is one ``rename`` without columns."""
    pairs = same_columns(old.columns, new.columns, renamed)
    matched = set(pairs.values())
    dropped = [column for column in old.columns if column.name not in pairs]
    added = [column for column in new.columns if column.name not in matched]
    changes = [*_column_changes(old, new, pairs)]
    changes += [SchemaChange(ChangeKind.DROP_COLUMN, before=column) for column in dropped]
    changes += [SchemaChange(ChangeKind.ADD_COLUMN, after=column) for column in added]
    if renamed is None and (maybe := _maybe_renamed(dropped, added)):
        changes.append(maybe)
    key = tuple(pairs.get(name, name) for name in old.key)
    if key != new.key:
        detail = f"the key changed from ({', '.join(old.key)}) to ({', '.join(new.key)})"
        changes.append(SchemaChange(ChangeKind.CHANGE_KEY, detail=detail))
    return tuple(changes)


def column_changes(old: TableSchema, new: TableSchema) -> tuple[SchemaChange, ...]:
    """Without a change of the key, which the stream may show in its own way."""
    return tuple(change for change in compare(old, new) if change.kind is not ChangeKind.CHANGE_KEY)


def same_columns(
    old: Sequence[Column], new: Sequence[Column], renamed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Old name → new name of the columns in both. ``renamed``: as in ``compare``; a name that ``old`` has already was
    not given to another of its columns."""
    by_name = {column.name: column for column in new}
    by_id = {column.id: column for column in new if column.id}
    ids = {column.id for column in old}
    names = {column.name for column in old}
    renamed = {former: present for former, present in (renamed or {}).items() if present not in names}
    identities = {column.id or column.name: column for column in old if column.id or column.name not in ids}
    same = {column.name: by_id[identity].name for identity, column in identities.items() if identity in by_id}
    pairs = {}
    for column in old:
        after = by_name.get(renamed.get(column.name, column.name))
        if column.name in same:
            pairs[column.name] = same[column.name]
        elif after is not None and not (column.id and after.id) and after.id not in identities:
            pairs[column.name] = after.name
    return pairs


def _column_changes(old: TableSchema, new: TableSchema, pairs: Mapping[str, str]) -> Iterator[SchemaChange]:
    both = [(old.column(before), new.column(after)) for before, after in pairs.items()]
    for before, after in both:
        if before.name != after.name:
            yield SchemaChange(ChangeKind.RENAME, before, replace(before, name=after.name, id=after.id))
    for before, after in both:
        if before.type != after.type:
            kind = ChangeKind.WIDEN if widens(before.type, after.type) else ChangeKind.NARROW
            yield SchemaChange(kind, replace(before, name=after.name, id=after.id), after)


def _maybe_renamed(dropped: Iterable[Column], added: Iterable[Column]) -> SchemaChange | None:
    """Two columns with ids are certainly not the same."""
    pairs = [(old.name, new.name) for old in dropped for new in added if not (old.id and new.id)]
    if not pairs:
        return None
    old, new = (", ".join(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
    return SchemaChange(ChangeKind.RENAME, detail=f"{old} dropped while {new} added: perhaps a rename")


def widens(old: LogicalType, new: LogicalType) -> bool:
    """Whether every value of ``old`` is a value of ``new`` without loss of digits."""
    if old.kind is Kind.DECIMAL and new.kind is Kind.DECIMAL:
        assert old.precision and new.precision and old.scale is not None and new.scale is not None
        return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    return new.kind in WIDER.get(old.kind, frozenset())
