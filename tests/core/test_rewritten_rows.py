"""What becomes of a table whose rows were rewritten at the source with other values."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.verify import _after_rewrite
from tests.core.test_decide import DEFINITION, control, table

RECORD = control("public.a")
DIFFERENT = TableResult(
    "public.a", Outcome.DONE, detail={"identical": False, "source_rows": 3, "target_rows": 2, "differences": ["7"]}
)


def after_rewrite(mode: SnapshotMode, reconcile: Reconcile) -> tuple[TableResult, list[ControlRecord]]:
    """Its result, and what was committed."""
    committed = list[ControlRecord]()

    def fence(target: str, current: TargetState, record: ControlRecord) -> ControlRecord:
        committed.append(record)
        return record

    rule = replace(DEFINITION.tables[0], snapshot=Snapshot(mode=mode))
    definition = replace(DEFINITION, tables=(rule,), source=replace(DEFINITION.source, reconcile=reconcile))
    job: Any = SimpleNamespace(
        step=SimpleNamespace(definition=definition, run_id="r1"), tables=SimpleNamespace(fence=fence)
    )
    task = replace(table("public.a", RECORD).task, rule=rule)
    copy = Copy("f", {}, task.schema, SplitRead(()), 0)
    result = _after_rewrite(job, task, TargetState(True, RECORD), RECORD, copy, DIFFERENT)
    return result, committed


@pytest.mark.parametrize(
    ("mode", "reconcile"),
    [(SnapshotMode.INITIAL, Reconcile.AUTO), (SnapshotMode.WHEN_NEEDED, Reconcile.MANUAL)],
)
def test_it_is_copied_again_where_each_hole_is(mode: SnapshotMode, reconcile: Reconcile) -> None:
    result, (record,) = after_rewrite(mode, reconcile)
    assert (result.outcome, record.state.name) == (Outcome.DONE, TableState.RESYNCING)


@pytest.mark.parametrize(
    ("mode", "reconcile", "remedy"),
    [
        (SnapshotMode.INITIAL, Reconcile.MANUAL, "airflow cdc resync shop --table public.a"),
        (
            SnapshotMode.SCHEMA_ONLY,
            Reconcile.AUTO,
            "copy its rows: set `snapshot: {mode: initial}`",
        ),
    ],
)
def test_it_waits_for_an_operator_where_a_copy_would_have_no_rows_or_none_is_allowed(
    mode: SnapshotMode, reconcile: Reconcile, remedy: str
) -> None:
    result, committed = after_rewrite(mode, reconcile)
    assert (result.outcome, committed) == (Outcome.BLOCKED, [])
    assert result.problem is not None and result.problem.code == "SRC101" and result.problem.do.startswith(remedy)
