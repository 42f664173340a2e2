"""The fencing token of a full copy, and which of several copies commits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.copied.kept_copies import (
    KeptCopy,
    KeptSplit,
    basis_of,
    kept_copy_path,
    kept_splits_folder,
)
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Fenced, SourceUnreachable
from airflow_cdc_provider.core.log.change_log import AUDIT, EXPIRED, Hole
from airflow_cdc_provider.core.spec.snapshot import Snapshot
from airflow_cdc_provider.core.table.control_record import ControlRecord, token
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.copies.copying import build_control_record, commit_copy, for_each_copy, table_status
from spark_jobs.copies.kept_copy import OpenedCopy, continued_copy, must_catch_up
from spark_jobs.copies.kept_splits import ROWS
from spark_jobs.copies.read_end import end_of_read
from spark_jobs.runtime.job import Job, TableWork
from tests.spark.scripted_table import ScriptedTable

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False),), ("id",))
REPLICATING = State(TableState.REPLICATING, "2026-01-01")
RECORD = ControlRecord("hand", "public.t", "log", "tests", "a", 3, 0, "f", REPLICATING)
NOT_LISTED = Hole("", "public.other", "")
COPY = Copy("f", {"s": "1"}, SCHEMA, SplitRead(()), 0)


@pytest.fixture
def table(tmp_path: Path) -> ScriptedTable:
    """A log of two windows and no target, without a Spark session: no test here reads rows."""
    made = ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]
    made.land()
    made.land()
    return made


def copying(table: ScriptedTable, **more: Any) -> tuple[Job, TableWork]:
    task = table.task()
    job = table.job(StepKind.SNAPSHOT, (task,), **more)
    vars(job.resources).update(connector=SimpleNamespace(exact_snapshot=True, identity=dict))
    return job, TableWork(task, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("claimed", "state"),
    [
        (6, TargetState(exists=False)),
        (0, TargetState(True, replace(RECORD, fence=6), token=token(6, 0))),
        (2, TargetState(True, RECORD, token=token(6, 1), restored=True)),
        (6, TargetState(True, RECORD, token=RECORD.token)),
    ],
)
def test_a_copy_takes_the_fence_above_all_claimed_and_recorded_ones(
    table: ScriptedTable, claimed: int, state: TargetState
) -> None:
    job, work = copying(table)
    assert build_control_record(job, work.task, claimed, state, COPY, REPLICATING, None).fence == 7


def test_a_copy_records_the_commands_that_it_carries_out(table: ScriptedTable) -> None:
    job, work = copying(table)
    task = replace(work.task, resyncs=("c1", "c2"))
    record = build_control_record(job, task, 0, TargetState(exists=False), COPY, REPLICATING, None)
    assert record.resyncs == ("c1", "c2")


def test_a_copy_records_the_name_that_its_table_has_in_the_source(table: ScriptedTable) -> None:
    job, work = copying(table)
    records = [
        build_control_record(job, task, 0, TargetState(exists=False), COPY, REPLICATING, None)
        for task in (work.task, replace(work.task, renamed_to="public.u"))
    ]
    assert [record.name_in_source for record in records] == ["", "public.u"]


def test_a_read_ends_when_the_stream_has_what_it_saw(table: ScriptedTable) -> None:
    """A window that is sealed while the source captures the last commits lacks them."""
    job, work = copying(table)
    vars(job.source).update(wait_for_capture=table.land)
    assert end_of_read(job, work).high == table.log.sealed() + 2 == 5


def test_a_fence_that_is_claimed_after_the_copy_chose_its_own_stops_the_copy(table: ScriptedTable) -> None:
    job, work = copying(table)

    def state_before_a_pause(*_: str) -> TargetState:
        assert table.log.claim_fence(replace(RECORD, fence=4))
        return TargetState(True, RECORD, token=RECORD.token)

    assert table.log.claim_fence(RECORD)
    late: Any = SimpleNamespace(log=table.log, tables=SimpleNamespace(state=state_before_a_pause))
    record = build_control_record(job, work.task, *table_status(late, work.task), COPY, REPLICATING, None)
    with pytest.raises(Fenced, match="CPY001"):
        commit_copy(job, work, None, None, record)  # type: ignore[arg-type]


def test_of_two_first_copies_with_different_anchors_one_is_fenced_off(table: ScriptedTable) -> None:
    for window in (1, 2):
        job, work = copying(table, window=window)
        record = build_control_record(job, work.task, 0, TargetState(exists=False), COPY, REPLICATING, None)
        if window == 1:
            assert table.log.claim_fence(record)
    with pytest.raises(Fenced, match="CPY001"):
        commit_copy(job, work, None, None, record)  # type: ignore[arg-type]


def test_a_copy_of_another_source_than_that_of_the_run_is_not_committed(table: ScriptedTable) -> None:
    job, work = copying(table)
    record = build_control_record(job, work.task, 0, TargetState(exists=False), COPY, REPLICATING, None)
    vars(job.source).update(identity=lambda: {"system": "8"})
    with pytest.raises(SourceUnreachable, match="SRC010"):
        commit_copy(job, work, None, None, record)  # type: ignore[arg-type]
    assert table.log.highest_fence(work.task.table) == 0


def test_a_copy_that_another_attempt_may_have_continued_must_catch_up(table: ScriptedTable) -> None:
    job, work = copying(table)
    began = datetime.now(UTC)
    alone, opened = OpenedCopy(job, COPY, began), OpenedCopy(job, COPY, began, "c1")
    kept = KeptCopy("c1", began.isoformat(), 1, basis_of(job.step, work.task), COPY)
    found = [must_catch_up(alone, work.task), must_catch_up(opened, work.task)]
    for one in (kept, replace(kept, continued=True), replace(kept, id="c2")):
        job.log.store.write(kept_copy_path(work.task.table), one.encode())
        found.append(must_catch_up(opened, work.task))
    assert found == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("hole", "is_continued"),
    [
        (None, True),
        (NOT_LISTED, False),
        (Hole(EXPIRED, "public.t", "g", detail="the log was purged"), False),
        (Hole(EXPIRED, "public.t", "", detail="a file is gone"), False),
        (Hole(EXPIRED, "public.t", "e"), True),
        (Hole(EXPIRED, "public.u", "g"), True),
        (Hole(AUDIT, "public.t", "g"), True),
    ],
)
def test_a_copy_is_not_continued_where_the_log_has_a_hole_after_its_anchor(
    table: ScriptedTable, hole: Hole | None, is_continued: bool
) -> None:
    """It would be blocked with its commit; a new copy has what the hole lacks."""
    job, work = copying(table)
    kept = KeptCopy("c1", "2026-01-01T00:00:00+00:00", 2, basis_of(job.step, work.task), COPY)
    job.log.store.write(kept_copy_path(work.task.table), kept.encode())
    split = f"{kept_splits_folder(work.task.table, 'c1', ROWS)}/000000.json"
    job.log.store.write(split, KeptSplit(7, "").encode())
    table.land(holes=(hole,) if hole else (), listed=hole is not NOT_LISTED)
    assert (continued_copy(job, work.task, COPY) is not None) is is_continued
    assert job.log.store.exists(split) is is_continued


def test_tables_are_copied_in_the_order_of_their_priority(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = table.task()
    given = {"low": -1, "first": 0, "second": 0, "high": 7}
    tables = tuple(
        replace(task, table=name, rule=replace(task.rule, snapshot=Snapshot(priority=priority)))
        for name, priority in given.items()
    )
    monkeypatch.setattr(Job, "source", SimpleNamespace(copies_at_once=lambda: 1))
    copied = list[str]()

    def copy(_: Job, work: TableWork) -> TableResult:
        copied.append(work.task.table)
        return work.result(Outcome.DONE)

    job = table.job(StepKind.SNAPSHOT, tables)
    for_each_copy(job, copy)
    assert copied == ["high", "first", "second", "low"]
