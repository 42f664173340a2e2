"""Whether an attempt may continue with a table: what it was started with, against what it finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.runtime.table_guard import require_current_batch, require_expected_fence

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32)),), ("id",))
RECORD = ControlRecord("r", "public.t", "log", "owner", "a", 2, 5, "f", State(TableState.REPLICATING, "2026-01-01"))


def task(control: ControlRecord | None) -> TableTask:
    return TableTask("public.t", "t", SCHEMA, TableRule("public.t"), "", TableState.REPLICATING, control)


def test_a_batch_fits_the_fence_and_the_cursor_it_was_staged_on() -> None:
    require_current_batch(2, 5, RECORD, TargetState(True, RECORD))


@pytest.mark.parametrize(("fence", "window"), [(1, 5), (3, 5), (2, 4), (2, 6)])
def test_a_batch_fits_no_other_fence_and_no_other_cursor(fence: int, window: int) -> None:
    with pytest.raises(Fenced, match="TGT034"):
        require_current_batch(fence, window, RECORD, TargetState(True, RECORD))


def test_an_attempt_keeps_its_fence_wherever_the_cursor_is() -> None:
    require_expected_fence(task(replace(RECORD, window=4)), RECORD)


@pytest.mark.parametrize("earlier", [None, replace(RECORD, fence=1), replace(RECORD, fence=3)])
def test_an_attempt_under_another_fence_is_fenced_off(earlier: ControlRecord | None) -> None:
    with pytest.raises(Fenced, match="TGT035"):
        require_expected_fence(task(earlier), RECORD)
