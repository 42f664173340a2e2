"""The metrics of replicators: names, units and meanings, and the values of those that a state store shows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.decisions.freshness import freshness
from airflow_cdc_provider.core.log.retained_log import SourceRetention
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.copies import source_table, target_of_copy
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import parse_utc

REPLICATOR, TABLE, TARGET = "replicator", "table", "target"
OF_TABLE = (TABLE, TARGET)


class MetricKind(StrEnum):
    """A counter adds up what happened in runs, a gauge is a value at the end of a run, a timer a duration."""

    COUNTER = "counter"
    GAUGE = "gauge"
    TIMER = "timer"


@dataclass(frozen=True)
class Metric:
    """``tags``: besides ``replicator``, which every metric has."""

    name: str
    kind: MetricKind
    unit: str
    tags: tuple[str, ...]
    meaning: str


@dataclass(frozen=True)
class Sample:
    """A value of a metric. ``tags``: all of them."""

    metric: Metric
    value: float
    tags: Mapping[str, str]


def plain_samples(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """As plain JSON: the command line and the API print the same."""
    return [
        {"metric": one.metric.name, "value": one.value, "unit": one.metric.unit, "tags": dict(one.tags)}
        for one in samples
    ]


C, G, T = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.TIMER

LAG = Metric("cdc.lag", G, "seconds", OF_TABLE, "the copy has all changes of the source that are older than this")
LATE = Metric("cdc.late", G, "0 or 1", OF_TABLE, "whether the lag, or the wait for a first copy, exceeds `freshness`")
ATTAINMENT = Metric(
    "cdc.attainment", G, "0 to 1", OF_TABLE, "the part of the last 30 days in which the copy was not late"
)
TABLES = Metric("cdc.tables", G, "tables", ("state",), "tables in each state; 0 for states without tables")
ROWS = Metric("cdc.rows", G, "rows", OF_TABLE, "rows in the target, as last counted")
WINDOW = Metric("cdc.window", G, "window", OF_TABLE, "the last window of the change log that the copy has")
BACKLOG = Metric(
    "cdc.backlog", G, "bytes", OF_TABLE, "the files of the change log that the copy does not have at the end of the run"
)
QUARANTINED = Metric("cdc.quarantined", G, "records", OF_TABLE, "bad records that wait for a decision")
PARKED = Metric("cdc.parked", G, "records", OF_TABLE, "records held behind records in quarantine or to be fetched")
FAILING = Metric("cdc.failing_attempts", G, "runs", OF_TABLE, "runs that have failed for the table, one after another")

KEPT = Metric("cdc.source.kept", G, "bytes", (), "the log that the source keeps for the replicator")
RETENTION_LEFT = Metric(
    "cdc.source.retention_left",
    G,
    "seconds",
    (),
    "until the source drops changes that were not read, if nothing is read from now on; negative: it may have",
)

INSERTS = Metric("cdc.dml.insert", C, "rows", OF_TABLE, "rows inserted into the copy by changes of the source")
UPDATES = Metric("cdc.dml.update", C, "rows", OF_TABLE, "rows updated in the copy, with those marked as deleted")
DELETES = Metric("cdc.dml.delete", C, "rows", OF_TABLE, "rows removed from the copy")
COPIED = Metric("cdc.copied", C, "rows", OF_TABLE, "rows written by first copies and resyncs")
DDL = Metric("cdc.ddl", C, "changes", OF_TABLE, "changes of the columns of the copy")
ERRORS = Metric(
    "cdc.errors",
    C,
    "problems",
    (TABLE, "code"),
    "problems of failed runs; `table` is empty if they concern none",
)
RETRIES = Metric(
    "cdc.retries",
    C,
    "jobs",
    OF_TABLE,
    "Spark jobs of the run that were submitted again; `table` and `target` are empty if a job has several tables",
)
RECORDS = Metric("cdc.extracted.records", C, "records", (), "records of sealed windows")
BYTES = Metric("cdc.extracted.bytes", C, "bytes", (), "bytes of sealed windows in staging")
COST = Metric("cdc.cost", C, "named by `unit`", (*OF_TABLE, "unit"), "what the target bills, as `bytes_billed`")

PHASE = Metric(
    "cdc.phase",
    T,
    "milliseconds",
    (*OF_TABLE, "step", "phase"),
    "duration of a phase of a Spark job, of one table; `table` and `target` are empty if it is of all tables together",
)

METRICS = (
    *(LAG, LATE, ATTAINMENT, TABLES, ROWS, WINDOW, BACKLOG, QUARANTINED, PARKED, FAILING, KEPT, RETENTION_LEFT),
    *(INSERTS, UPDATES, DELETES, COPIED, DDL, ERRORS, RETRIES, RECORDS, BYTES, COST, PHASE),
)


def table_tags(replicator: str, copy: str) -> dict[str, str]:
    return {REPLICATOR: replicator, TABLE: source_table(copy), TARGET: target_of_copy(copy)}


def gauges(definition: Definition, rows: Iterable[TableRow], retention: SourceRetention, now: str) -> Iterator[Sample]:
    """``rows``: of the tables. ``now``: UTC in ISO 8601 format."""
    replicator = definition.name
    states = Counter[TableState]()
    for row in rows:
        states[row.state] += 1
        yield from _of_row(row, table_tags(replicator, row.table), definition.freshness, now)
    for state in TableState:
        yield Sample(TABLES, states[state], {REPLICATOR: replicator, "state": state})
    if retention.log.bytes is not None:
        yield Sample(KEPT, retention.log.bytes, {REPLICATOR: replicator})
    if (end := retention.runs_out_at) is not None:
        yield Sample(RETENTION_LEFT, (end - parse_utc(now)).total_seconds(), {REPLICATOR: replicator})


def _of_row(row: TableRow, tags: Mapping[str, str], allowed: timedelta, now: str) -> Iterator[Sample]:
    fresh = freshness(row, allowed, now)
    if fresh.lag_s is not None:
        yield Sample(LAG, fresh.lag_s, tags)
    fraction = row.attainment.fraction()
    if fraction is not None:
        yield Sample(ATTAINMENT, fraction, tags)
    if row.rows is not None:
        yield Sample(ROWS, row.rows, tags)
    if row.backlog is not None:
        yield Sample(BACKLOG, row.backlog, tags)
    yield Sample(LATE, int(fresh.late), tags)
    yield Sample(WINDOW, row.window, tags)
    yield Sample(QUARANTINED, row.quarantined, tags)
    yield Sample(PARKED, row.carry.parked, tags)
    yield Sample(FAILING, row.attempts, tags)
