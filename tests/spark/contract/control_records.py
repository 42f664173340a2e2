"""The control record of a table, and fences on it."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import StepKind, TableResult
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from tests.spark.scripted_table import ScriptedTable


def control(table: ScriptedTable) -> ControlRecord:
    found = table.target_state().control
    assert found is not None
    return found


def require_accounted(record: ControlRecord) -> None:
    """Every record that the last batch read, or that waited for it, is counted in exactly one category."""
    counts, carry = record.accounting, record.carry
    if counts:
        assert counts["read"] + counts["waited"] == sum(counts.values()) - counts["read"] - counts["waited"], counts
        assert min(counts.values()) >= 0, counts
        assert (counts["quarantined"], counts["held"]) == (carry.quarantined, carry.dirty + carry.parked), counts


def fence(table: ScriptedTable, state: TableState = TableState.REPLICATING) -> ControlRecord:
    current = table.target_state()
    assert current.control is not None
    record = current.control.fenced(State(state, "2026-01-01T00:00:00Z"))
    return table.job(StepKind.STAGE, ()).tables.fence("t", current, record)


def problem(result: TableResult) -> str:
    assert result.problem is not None
    return result.problem.code
