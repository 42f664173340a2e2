"""What the end of a run measures of a table: how long it was late, its changes, its cost, its backlog. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from airflow_cdc_provider.core.decisions.facts import LogFacts
from airflow_cdc_provider.core.decisions.freshness import aging_since
from airflow_cdc_provider.core.decisions.log_bytes import log_bytes
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.log.change_log import Manifest, TableSlice
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import DISCARDED
from airflow_cdc_provider.core.table.attainment import rebuilt
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.costs import Cost, total, with_cost
from airflow_cdc_provider.core.table.recent_changes import with_changes
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, WITHOUT_COPY


def measured_row(
    row: TableRow,
    before: TableRow | None,
    results: Sequence[TableResult],
    log: LogFacts,
    allowed: timedelta,
    at: str,
) -> TableRow:
    """``before``: the row when the run ended, or when an earlier try of its end has written it: the same opening
    is counted once. ``results``: of all steps. ``at``: when the run ends. ``allowed``: the ``freshness`` of the
    definition."""
    since = aging_since(before) if before and before.state not in WITHOUT_COPY else ""
    row = replace(row, attainment=row.attainment.measured(since, allowed, at), backlog=_backlog(row, log))
    if before is not None and before.counted_opening == row.counted_opening:
        return row
    applied = log_bytes(log.manifests, source_table(row.table), before.passed, row.passed) if before else 0
    cost = total([Cost(bytes=applied), *map(_cost, results)])
    changes = sum(map(_changes, results))
    return replace(row, recent=with_changes(row.recent, changes, at), costs=with_cost(row.costs, cost, at))


def _backlog(row: TableRow, log: LogFacts) -> int | None:
    if row.state not in TAKES_CHANGES or row.control is None or row.control.log_id != log.log_id:
        return None
    return log_bytes(log.manifests, source_table(row.table), row.passed, log.sealed)


def _cost(result: TableResult) -> Cost:
    return Cost(seconds=round(sum(result.phases.values()), 3), rows=_written(result), billed=dict(result.cost))


def _changes(result: TableResult) -> int:
    """A full copy has none: it counts rows that it has read."""
    return 0 if Operation.READ in result.counts else _written(result)


def _written(result: TableResult) -> int:
    if result.outcome is not Outcome.DONE:
        return 0
    return sum(count for operation, count in result.counts.items() if operation != DISCARDED)


def remeasured_row(row: TableRow, manifests: Sequence[Manifest], allowed: timedelta) -> TableRow:
    """From the change log alone, for a row that was lost. The seconds of jobs and what targets have billed are gone."""
    source = source_table(row.table)
    waited = [(one.sealed_at, one.commit_ts_min or "" if source in one.tables else "") for one in manifests]
    row = replace(row, attainment=rebuilt(waited, allowed))
    for one in manifests:
        part = one.tables.get(source)
        if part and one.window <= row.window:
            row = _with_slice(row, part, one.sealed_at)
    return row


def _with_slice(row: TableRow, part: TableSlice, sealed_at: str) -> TableRow:
    cost = Cost(rows=part.rows, bytes=sum(file.bytes for file in part.files))
    recent = with_changes(row.recent, part.rows, sealed_at)
    return replace(row, recent=recent, costs=with_cost(row.costs, cost, sealed_at))
