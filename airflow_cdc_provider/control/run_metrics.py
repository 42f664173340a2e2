"""What a run adds to the metrics of its replicator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.control.results import Results
from airflow_cdc_provider.core import metrics as m
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.retained_log import SourceRetention
from airflow_cdc_provider.core.metrics import REPLICATOR, TABLE, TARGET, Sample, table_tags
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.state_rows import AttemptRow, TableRow
from airflow_cdc_provider.state.store import StateStore

EFFECTS = {"inserted": m.INSERTS, "updated": m.UPDATES, "deleted": m.DELETES, "read": m.COPIED}
"""A count of a step's result → its counter."""


@dataclass(frozen=True)
class RunEnd:
    """``opening``: of the run. ``before``, ``rows``: of the tables, when the end of the run began and now.
    ``retried``: the attempts that submitted a job again. ``now``: UTC in ISO 8601 format."""

    opening: str
    before: Mapping[str, TableRow]
    rows: Mapping[str, TableRow]
    results: Results
    problems: Sequence[Problem]
    retried: Sequence[AttemptRow]
    retention: SourceRetention
    now: str


def current_gauges(state: StateStore, definition: Definition, now: str) -> Iterator[Sample]:
    """As of now, by the state store."""
    rows, retention = state.tables(definition.name).values(), state.positions.get(definition.name).retention
    return m.gauges(definition, rows, retention, now)


def run_samples(definition: Definition, end: RunEnd) -> tuple[Sample, ...]:
    """Counters are left out if the end of this run is repeated: they have been sent, or were lost with a worker."""
    rows = {**end.before, **end.rows}.values()  # also of tables that this run has not served
    samples = [*m.gauges(definition, rows, end.retention, end.now)]
    if not any(row.counted_opening == end.opening for row in end.before.values()):
        samples += _counters(definition.name, end)
    return tuple(samples)


def _counters(name: str, end: RunEnd) -> Iterator[Sample]:
    tags = {REPLICATOR: name}
    for row in end.rows.values():
        yield from _of_table(name, row, end)
    for (table, code), count in Counter((problem.table, problem.code) for problem in end.problems).items():
        yield Sample(m.ERRORS, count, {**tags, TABLE: table, "code": code})
    for table, number in Counter(_only(attempt.tables) for attempt in end.retried).items():
        yield Sample(m.RETRIES, number, _tags(name, table))
    extracted = end.results.steps.get("extract")
    if extracted and extracted.window:
        yield Sample(m.RECORDS, extracted.window.records, tags)
        yield Sample(m.BYTES, extracted.window.bytes, tags)
    for step, table, phases in end.results.phases():
        for phase, seconds in phases.items():
            yield Sample(m.PHASE, seconds * 1000, {**_tags(name, table), "step": step, "phase": phase})


def _only(tables: Sequence[str]) -> str:
    return tables[0] if len(tables) == 1 else ""


def _tags(name: str, table: str) -> dict[str, str]:
    """Empty tags for what concerns no single table."""
    return table_tags(name, table) if table else {REPLICATOR: name, TABLE: "", TARGET: ""}


def _of_table(name: str, row: TableRow, end: RunEnd) -> Iterator[Sample]:
    tags = table_tags(name, row.table)
    counts, cost = end.results.counts(row.table), Counter[str]()
    for result in end.results.of_writing_steps(row.table):
        cost.update(result.cost)
    for effect, metric in EFFECTS.items():
        yield Sample(metric, counts[effect], tags)
    for unit, amount in cost.items():
        yield Sample(m.COST, amount, {**tags, "unit": unit})
    if changes := _column_changes(end.before.get(row.table), row):
        yield Sample(m.DDL, changes, tags)


def _column_changes(before: TableRow | None, row: TableRow) -> int:
    """The number of columns that were added, removed or given another type."""
    if before is None or before.control is None or row.control is None:
        return 0
    former, current = before.control.schema, row.control.schema
    if former is None or current is None:
        return 0
    return len({column.name for column in set(former.columns) ^ set(current.columns)})
