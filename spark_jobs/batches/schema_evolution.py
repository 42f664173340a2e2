"""How far a batch may go: a batch never spans a schema change that an operator must decide about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_evolution import compare


@dataclass(frozen=True)
class WindowSchemas:
    """The schemas of the records of one window, in order. ``unknown``: columns whose old rows hold a value that the
    source cannot tell."""

    window: int
    schemas: tuple[TableSchema, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Walk:
    """``window`` is the last one the batch may hold; ``schema`` what the table holds then, ``added`` what it lacks now.
    ``reason`` says why the walk ended early, empty where it did not; ``wanted`` is the schema it stopped at."""

    window: int
    schema: TableSchema
    added: tuple[Column, ...] = ()
    reason: str = ""
    wanted: TableSchema | None = None


def walk(held: TableSchema, start: int, windows: Iterable[WindowSchemas]) -> Walk:
    """From the schema the target holds through the windows after ``start``. A name that comes back after it was dropped
    ends the batch without a reason: the next batch starts with it, and the values of the two columns never mix."""
    now = Walk(start, held)
    gone: set[str] = set()
    for window in windows:
        after, lost = now, set(gone)
        for schema in window.schemas:
            change = compare(after.schema, schema)
            lost |= set(change.dropped)
            names = {column.name for column in change.added}
            reason = change.breaking or _needs_rewrite(change.widened) or _unknown(change.added, window.unknown)
            if names & gone and not reason:
                return now
            if names & lost and not reason:
                reason = f"column {', '.join(sorted(names & lost))} was dropped and added anew in one window"
            if reason:
                return Walk(now.window, now.schema, now.added, reason, schema)
            kept = tuple(column for column in after.added if column.name not in change.dropped)
            after = Walk(after.window, schema, (*kept, *change.added))
        now, gone = Walk(window.window, after.schema, after.added), lost
    return now


def _needs_rewrite(widened: tuple[Column, ...]) -> str:
    listed = ", ".join(f"{column.name} to {column.type}" for column in widened)
    return f"the target cannot widen a column in place: {listed}" if widened else ""


def _unknown(added: tuple[Column, ...], unknown: tuple[str, ...]) -> str:
    names = ", ".join(column.name for column in added if column.name in unknown)
    return f"nobody can tell what rows older than the new column hold: {names}" if names else ""
