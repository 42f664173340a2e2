"""How far a batch may go: a batch never spans a schema change that requires a decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_evolution import compare


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
    the target lacks. ``reason``: why the walk ended early, else empty; ``stopped_at`` is the schema it stopped at."""

    window: int
    schema: TableSchema
    added: tuple[Column, ...] = ()
    reason: str = ""
    stopped_at: TableSchema | None = None


def walk_schemas(current: TableSchema, start: int, windows: Iterable[WindowSchemas]) -> Walk:
    """From the current schema of the target through the windows after ``start``. A column that is dropped and added
    again ends the batch without a reason: the next batch starts with it, and the values of the two columns never
    mix."""
    accepted = Walk(start, current)
    dropped: set[str] = set()
    for window in windows:
        pending, dropped_by_now = accepted, set(dropped)
        for schema in window.schemas:
            change = compare(pending.schema, schema)
            dropped_by_now |= set(change.dropped)
            names = {column.name for column in change.added}
            reason = change.breaking or _needs_rewrite(change.widened) or _unknown(change.added, window.unknown)
            if names & dropped and not reason:
                return accepted
            if names & dropped_by_now and not reason:
                reason = f"column {', '.join(sorted(names & dropped_by_now))} was dropped and added again in one window"
            if reason:
                return Walk(accepted.window, accepted.schema, accepted.added, reason, schema)
            kept = tuple(column for column in pending.added if column.name not in change.dropped)
            pending = Walk(pending.window, schema, (*kept, *change.added))
        accepted, dropped = Walk(window.window, pending.schema, pending.added), dropped_by_now
    return accepted


def _needs_rewrite(widened: tuple[Column, ...]) -> str:
    listed = ", ".join(f"{column.name} to {column.type}" for column in widened)
    return f"the target cannot widen a column in place: {listed}" if widened else ""


def _unknown(added: tuple[Column, ...], unknown: tuple[str, ...]) -> str:
    names = ", ".join(column.name for column in added if column.name in unknown)
    return f"the value of a new column in existing rows is unknown: {names}" if names else ""
