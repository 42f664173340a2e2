"""How far a batch may go: within a batch, columns are only added or dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.decisions.schema_decisions import SchemaStop
from airflow_cdc_provider.core.spec.schema_policy import SchemaPolicy
from airflow_cdc_provider.core.table.equal_names import without_case
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange, compare

ALTERED = frozenset({ChangeKind.WIDEN, ChangeKind.RENAME, ChangeKind.DROP_COLUMN})
"""What a target executes by an alteration."""


@dataclass(frozen=True)
class WindowSchemas:
    """The schemas of the records of one window, in order. ``unknown``: added columns whose value in existing rows is
    unknown."""

    window: int
    schemas: tuple[TableSchema, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Walk:
    """``window`` is the last one of the batch; ``schema`` is the table's schema at its end, ``added`` the columns that
    the target lacks. ``stop``: the schema change that ended the batch. A column name that is used again, in any
    case, ends it without a ``stop``: the next batch starts with it, and the values of the two columns never mix."""

    window: int
    schema: TableSchema
    added: tuple[Column, ...] = ()
    stop: SchemaStop | None = None


def walk_schemas(
    current: TableSchema,
    start: int,
    windows: Iterable[WindowSchemas],
    policy: SchemaPolicy,
    is_approved: Callable[[SchemaStop], bool] = lambda _: False,
    renamed: Mapping[str, str] | None = None,
) -> Walk:
    """From the current schema of the target through the windows after ``start``, up to the first change that is not an
    added or a kept column. ``is_approved``: whether an operator has decided to apply the change. ``renamed``: earlier
    renames of columns, as operators have decided."""
    accepted = Walk(start, current)
    dropped: set[str] = set()
    for window in windows:
        pending, dropped_by_now = accepted, set(dropped)
        for number, schema in enumerate(window.schemas):
            if is_earlier(schema, pending.schema, window.schemas[number + 1 :], renamed):
                continue
            stop = SchemaStop(accepted.window, accepted.schema, schema)
            changes = _passing(pending.schema, schema, policy)
            if changes is None and is_approved(stop):
                changes = _passing(pending.schema, schema, SchemaPolicy(), {})
            if changes is None:
                return replace(accepted, stop=stop)
            added, gone = _added(changes), _dropped(changes)
            names, gone_by_now = {column.name for column in added}, dropped_by_now | set(map(without_case, gone))
            unknown = names & set(window.unknown)
            returning = {name for name in names if without_case(name) in gone_by_now - dropped}
            if unknown or returning:
                stop = replace(stop, unknown=tuple(sorted(unknown)), returning=tuple(sorted(returning)))
                return replace(accepted, stop=stop)
            if not dropped.isdisjoint(map(without_case, names)):
                return accepted
            dropped_by_now = gone_by_now
            kept = tuple(column for column in pending.added if column.name not in gone)
            pending = Walk(pending.window, schema, (*kept, *added))
        accepted, dropped = Walk(window.window, pending.schema, pending.added), dropped_by_now
    return accepted


def is_earlier(
    schema: TableSchema, current: TableSchema, later: Iterable[TableSchema], renamed: Mapping[str, str] | None
) -> bool:
    """Whether ``schema`` is that of records from before alterations that the target has already: then the window also
    contains records from after them, with one of the schemas ``later``."""
    if not _alters(schema, current, ALTERED, renamed):
        return False
    further = ALTERED | {ChangeKind.ADD_COLUMN}
    return any(
        _alters(schema, one, further, renamed) and _alters(current, one, further, renamed) is not None for one in later
    )


def _alters(
    before: TableSchema, after: TableSchema, kinds: Collection[ChangeKind], renamed: Mapping[str, str] | None
) -> bool | None:
    """Whether there are changes between the two; None if they include others than these kinds."""
    changes = compare(before, after, renamed)
    return bool(changes) if all(change.kind in kinds and change.is_certain for change in changes) else None


def _passing(
    before: TableSchema, after: TableSchema, policy: SchemaPolicy, renamed: Mapping[str, str] | None = None
) -> tuple[SchemaChange, ...] | None:
    """The changes, if all of them may happen within a batch."""
    changes = compare(before, after, renamed)
    return changes if policy.passes(changes) else None


def _added(changes: Iterable[SchemaChange]) -> tuple[Column, ...]:
    return tuple(change.after for change in changes if change.kind is ChangeKind.ADD_COLUMN and change.after)


def _dropped(changes: Iterable[SchemaChange]) -> set[str]:
    return {change.before.name for change in changes if change.kind is ChangeKind.DROP_COLUMN and change.before}
