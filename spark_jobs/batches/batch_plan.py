"""Which windows a batch holds, and the schema they end in."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_decisions import hole_of, last_hole
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.schema_evolution import Walk, walk
from spark_jobs.windows.log_reader import WindowSlice, cut, window_schemas


@dataclass(frozen=True)
class BatchPlan:
    """``windows`` hold records. After the batch the table stands at ``window`` and has ``schema``. ``touched``: only
    keys that these windows touch are staged (a repair); all where empty. ``problem``: why the batch stopped early."""

    windows: tuple[WindowSlice, ...]
    window: int
    schema: TableSchema
    added: tuple[Column, ...] = ()
    touched: tuple[WindowSlice, ...] = ()
    problem: Problem | None = None

    @property
    def rows(self) -> int:
        return sum(window.part.rows for window in self.windows)


def catch_up(log: ChangeLog, task: TableTask, control: ControlRecord, upto: int) -> BatchPlan:
    """Everything after the cursor, up to the first hole or schema change that an operator must decide about."""
    windows = cut(log, task.table, control.window, before_hole(log, control, upto))
    held = control.schema or task.schema
    walked = walk(held, control.window, window_schemas(log, windows, held, control.floor))
    return BatchPlan(
        tuple(window for window in windows if window.window <= walked.window and window.part.rows),
        walked.window,
        walked.schema,
        walked.added,
        problem=_schema_refused(control, walked) if walked.reason else None,
    )


def before_hole(log: ChangeLog, control: ControlRecord, upto: int) -> int:
    """The last window that can be applied before one that the table may not step over; ``upto`` where there is none.
    Where a schema broke, the schemas of the records say how far to go."""
    for number in range(control.window + 1, upto + 1):
        hole = hole_of(log.manifest(number), control.table, control.floor)
        if hole is not None and hole.kind != "schema":
            return number - 1
    return upto


def repair(log: ChangeLog, control: ControlRecord, first: int, last: int) -> BatchPlan:
    """The slice ``first`` to ``last`` and everything after it up to the cursor: what its keys have become since. What
    lies before a hole says nothing of that. Raises CommandRefused where the log or the table cannot serve it."""
    if not control.schema or not control.schema.key:
        raise _repair_refused(control, "the table has no key: equal rows cannot be told apart", "no key")
    if first < log.oldest():
        raise _repair_refused(
            control, "the change log no longer reaches back to there", f"oldest window {log.oldest()}"
        )
    hole = last_hole(map(log.manifest, range(first, control.window + 1)), control)
    windows = cut(log, control.table, hole or first - 1, control.window)
    schemas = window_schemas(log, windows, control.schema, control.floor)
    seen = {name for window in schemas for schema in window.schemas for name in schema.names}
    lost = sorted(seen - set(control.schema.names))
    if lost:
        raise _repair_refused(control, "columns were dropped since then", ", ".join(lost))
    full = tuple(window for window in windows if window.part.rows)
    touched = tuple(window for window in full if window.window <= last)
    return BatchPlan(full if touched else (), control.window, control.schema, touched=touched)


def _schema_refused(control: ControlRecord, walked: Walk) -> Problem:
    wanted = ", ".join(f"{column.name} {column.type}" for column in walked.wanted.columns) if walked.wanted else ""
    return Problem(
        "SCH001",
        "a schema change cannot be applied by itself",
        where=f"{control.table}, after window {walked.window}",
        found=walked.reason,
        allowed="new columns whose old rows hold a known value, and dropped columns",
        do=f"airflow cdc resync {control.replicator} --table {control.table} (copies the table as it is now: {wanted})",
        data=f"the target gets everything up to window {walked.window}; the change log keeps the rest",
    )


def _repair_refused(control: ControlRecord, what: str, found: str) -> CommandRefused:
    return CommandRefused(
        Problem(
            "CMD010",
            f"{control.table} cannot be repaired over this interval",
            where=control.table,
            found=f"{what}: {found}",
            do=f"airflow cdc resync {control.replicator} --table {control.table}",
            data="nothing was changed",
        )
    )
