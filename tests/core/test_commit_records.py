"""The control record that a merge writes to the log before it commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.steps import Batch, StepKind, TableTask
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.merge import _control_record, _name_commit
from tests.spark.scripted_table import ScriptedTable

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False),), ("id",))
CURSOR = ControlRecord("hand", "public.t", "log", "tests", "a", 3, 1, "f", State(TableState.REPLICATING, "2026-01-01"))
BATCH = Batch("public.t", "batches/b", 3, 1, 2, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> ScriptedTable:
    """A log of two windows and no target, without a Spark session."""
    made = ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]
    made.land()
    made.land()
    return made


def written_record(log: ChangeLog, task: TableTask, record: ControlRecord) -> tuple[ControlRecord, list[ControlRecord]]:
    """The record as written, and the fences that were raised in the target for it."""
    raised: list[ControlRecord] = []

    def fence(_: str, __: TargetState, record: ControlRecord) -> ControlRecord:
        assert log.claim_fence(record)
        raised.append(record)
        return record

    job: Any = SimpleNamespace(log=log, tables=SimpleNamespace(fence=fence))
    return _name_commit(job, task, TargetState(True, CURSOR), record), raised


def test_a_commit_of_the_stream_keeps_the_fence_and_advances_the_cursor(table: ScriptedTable) -> None:
    record = _control_record(table.job(StepKind.MERGE, ()), table.task(), CURSOR, BATCH)
    assert (record.fence, record.window, record.manifest_sha256) == (3, 2, table.log.manifest_sha256(2))
    assert record.nonce != CURSOR.nonce


def test_a_repair_keeps_the_cursor_and_raises_the_fence(table: ScriptedTable) -> None:
    record = _control_record(table.job(StepKind.MERGE, ()), table.task(), CURSOR, replace(BATCH, window=1, repair=True))
    assert (record.fence, record.window) == (4, 1) and record.token > CURSOR.token


def test_released_records_without_a_new_window_raise_the_fence_and_name_the_new_carry_over(
    table: ScriptedTable,
) -> None:
    left = CarryOver((), {"quarantined": 1})
    record = _control_record(table.job(StepKind.MERGE, ()), table.task(), CURSOR, replace(BATCH, window=1, carry=left))
    assert (record.fence, record.window, record.carry) == (4, 1, left) and record.token > CURSOR.token


def test_the_record_of_a_commit_is_written_before_the_commit(table: ScriptedTable) -> None:
    record = _control_record(table.job(StepKind.MERGE, ()), table.task(), CURSOR, BATCH)
    assert written_record(table.log, table.task(), record) == (record, [])
    assert table.log.control("public.t", record.token) == record


def test_a_token_that_another_attempt_has_used_raises_the_fence_in_the_target(table: ScriptedTable) -> None:
    record = _control_record(table.job(StepKind.MERGE, ()), table.task(), CURSOR, BATCH)
    assert table.log.write_control(replace(record, attempt="dead", nonce="dead"))
    mine, raised = written_record(table.log, table.task(), record)
    assert (mine.fence, mine.window) == (4, 2) and [one.fence for one in raised] == [4]
    assert table.log.control("public.t", mine.token) == mine


def test_a_repair_takes_a_token_above_the_fence_it_raised_before(table: ScriptedTable) -> None:
    record = _control_record(table.job(StepKind.MERGE, ()), table.task(), CURSOR, replace(BATCH, window=1, repair=True))
    mine, raised = written_record(table.log, table.task(), record)
    assert [one.fence for one in raised] == [4] and (mine.fence, mine.window) == (5, 1)
    assert table.log.control("public.t", mine.token) == mine
