"""Which windows a batch takes from the log, and which files it accepts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import CommandRefused, IntegrityBroken, StagingInvalid
from airflow_cdc_provider.core.log.change_log import Hole, manifest_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.table.applied_order import AppliedOrder
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.batches.batch_plan import BatchPlan, last_window_before_hole, plan_catch_up, plan_repair
from spark_jobs.batches.late_changes import LateChanges
from spark_jobs.extract import land_window
from spark_jobs.windows.log_reader import verify_files, windows_between
from tests.spark.scripted_table import ScriptedTable

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False),), ("id",))
CURSOR = ControlRecord(
    "hand", "public.t", "log", "tests", "a", 1, 2, "", State(TableState.REPLICATING, "2026-01-01"), schema=SCHEMA
)


@pytest.fixture
def table(tmp_path: Path) -> ScriptedTable:
    """A log of four windows with one record each, without a Spark session."""
    made = ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]
    for key in range(4):
        made.land([made.insert({"id": key})])
    return made


def numbers(plan: BatchPlan) -> list[int]:
    return [window.window for window in plan.windows]


def test_a_batch_takes_the_windows_behind_the_cursor_up_to_the_given_one(table: ScriptedTable) -> None:
    plan = plan_catch_up(table.log, table.task(), CURSOR, 4)
    assert (numbers(plan), plan.window) == ([3, 4], 4)
    plan = plan_catch_up(table.log, table.task(), replace(CURSOR, window=0), 3)
    assert (numbers(plan), plan.window) == ([1, 2, 3], 3)


def test_a_batch_ends_before_a_hole(table: ScriptedTable) -> None:
    table.land(holes=[Hole("overflow", "public.t", "")])
    table.land()
    assert last_window_before_hole(table.log, CURSOR, 6) == 4
    assert numbers(plan_catch_up(table.log, table.task(), CURSOR, 6)) == [3, 4]


def test_a_repair_takes_its_windows_and_all_later_ones(table: ScriptedTable) -> None:
    plan = plan_repair(table.log, replace(CURSOR, window=3), 1, 2)
    assert (numbers(plan), [window.window for window in plan.touched], plan.window) == ([1, 2, 3], [1, 2], 3)


def test_a_repair_begins_behind_the_last_hole(table: ScriptedTable) -> None:
    table.land([table.insert({"id": 8})], holes=[Hole("audit", "public.t", "")])
    table.land([table.insert({"id": 9})])
    plan = plan_repair(table.log, replace(CURSOR, window=6), 2, 6)
    assert (numbers(plan), [window.window for window in plan.touched]) == ([6], [6])
    assert plan_repair(table.log, replace(CURSOR, window=6), 2, 5) == BatchPlan((), 6, SCHEMA)


def test_a_repair_does_not_write_values_of_a_dropped_column_into_another_one_of_its_name(tmp_path: Path) -> None:
    wide = replace(SCHEMA, columns=(*SCHEMA.columns, Column("v", LogicalType(Kind.TEXT))))
    made = ScriptedTable(None, tmp_path, wide)  # type: ignore[arg-type]
    made.land([made.insert({"id": 1, "v": "a"})])
    made.land([made.alter(SCHEMA), made.insert({"id": 2})])
    made.land([made.alter(wide), made.insert({"id": 3, "v": "b"})])
    control = replace(CURSOR, window=3, schema=wide)
    with pytest.raises(CommandRefused, match=r"CMD010.*columns were dropped or renamed since then: v"):
        plan_repair(made.log, control, 1, 3)
    assert numbers(plan_repair(made.log, control, 2, 3)) == [2, 3]


def test_a_repair_passes_over_columns_that_the_copy_leaves_out(tmp_path: Path) -> None:
    wide = replace(SCHEMA, columns=(*SCHEMA.columns, Column("v", LogicalType(Kind.TEXT))))
    made = ScriptedTable(None, tmp_path, wide)  # type: ignore[arg-type]
    made.land([made.insert({"id": 1, "v": "a"})])
    plan = plan_repair(made.log, replace(CURSOR, window=1, ignored={"v": ""}), 1, 1)
    assert (numbers(plan), plan.schema) == ([1], SCHEMA)


def test_a_repair_is_not_refused_since_a_part_of_the_feed_lags_behind_a_new_column(tmp_path: Path) -> None:
    """A record from before the column comes in a later window."""
    wide = replace(SCHEMA, columns=(*SCHEMA.columns, Column("v", LogicalType(Kind.TEXT))))
    made = ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]
    first, lagging = made.insert({"id": 1}), made.insert({"id": 2})
    made.land([first, made.alter(wide), made.insert({"id": 3, "v": "a"})])
    made.land([lagging])
    newest = f"{epoch_prefix(1)}{1:032x}{0:016x}01"
    control = replace(CURSOR, window=2, schema=wide, applied=AppliedOrder(0, newest))
    late = LateChanges(made.log, made.task(), control, "batch")
    assert numbers(plan_repair(made.log, control, 1, 2, late)) == [1, 2]


def test_a_late_change_from_before_a_column_was_dropped_and_added_again_stops(tmp_path: Path) -> None:
    """Without ids, its value could be that of either column. A change after the second one is clear."""
    wide = replace(SCHEMA, columns=(*SCHEMA.columns, Column("v", LogicalType(Kind.TEXT))))
    made = ScriptedTable(None, tmp_path, wide)  # type: ignore[arg-type]

    def at(position: int, record: ChangeRecord) -> ChangeRecord:
        return replace(record, order_key=f"{epoch_prefix(1)}{position:032x}{0:016x}01")

    earlier, later = at(2, made.insert({"id": 2, "v": "old"})), at(6, made.insert({"id": 6, "v": "new"}))
    made.land([at(1, made.insert({"id": 1, "v": "a"}))])
    made.land([at(3, made.alter(SCHEMA)), at(4, made.insert({"id": 3}))])
    made.land([at(5, made.alter(wide)), newest := at(7, made.insert({"id": 4, "v": "b"}))])
    control = replace(CURSOR, window=3, schema=wide, applied=AppliedOrder(0, newest.order_key))
    made.land([later])
    late = LateChanges(made.log, made.task(), control, "batch")
    assert numbers(plan_catch_up(made.log, made.task(), control, 4, late=late)) == [4]
    made.land([earlier])
    with pytest.raises(IntegrityBroken, match=r"TGT043.*v was dropped and added again"):
        plan_catch_up(made.log, made.task(), control, 5, late=late)


def test_a_repair_that_begins_before_the_log_is_refused(table: ScriptedTable) -> None:
    table.log.store.delete(manifest_path(1))
    with pytest.raises(CommandRefused, match=r"CMD010.*oldest window 2"):
        plan_repair(table.log, CURSOR, 1, 2)


def test_a_file_of_the_right_length_with_other_content_is_refused(table: ScriptedTable) -> None:
    windows = windows_between(table.log, "public.t", 0, 4)
    verify_files(table.log, windows)
    file = Path(table.log.store.url(windows[2].part.files[0].path))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(StagingInvalid, match=r"STG005.*window 3"):
        verify_files(table.log, windows)


@pytest.mark.parametrize("lo", [{}, {"s": "3"}, {"s": "5"}])
def test_a_window_that_does_not_begin_where_the_last_one_ended_is_not_read(
    table: ScriptedTable, lo: dict[str, str]
) -> None:
    job = table.job(StepKind.EXTRACT, (table.task(),), window=5, lo=lo)
    with pytest.raises(StagingInvalid, match="STG004"):
        land_window(job)
