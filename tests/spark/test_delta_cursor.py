"""Cursor and fence of a Delta table, read and written by deltalake alone: no JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord, token
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta import target as target_module
from airflow_cdc_provider.targets.delta.local_engine.copy import FileLayout, write_files
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.naming import default_name

TABLE, TARGET = "public.orders", "orders"
SCHEMA = TableSchema(TABLE, (Column("id", LogicalType(Kind.INT64), False),), ("id",))


def control(fence: int, window: int, state: TableState = TableState.REPLICATING, attempt: str = "a") -> ControlRecord:
    now = State(state, "2026-01-01T00:00:00Z")
    return ControlRecord("shop", TABLE, "log", "owner", attempt, fence, window, "00", now, schema=SCHEMA)


@pytest.fixture
def tables(tmp_path: Path) -> DeltaTarget:
    log = ChangeLog(LocalStore(str(tmp_path / "staging")))
    return DeltaTarget(Target("delta", str(tmp_path / "lake")), ConnectionInfo(), "shop", log)


def commit(tables: DeltaTarget, record: ControlRecord, value: int, named: bool = True) -> None:
    """A data commit, as a merge makes it."""
    if named:
        assert tables.log.write_control(record)
    properties = CommitProperties(
        custom_metadata={"userMetadata": record_text(record)},
        app_transactions=[Transaction(tables.app_id(TABLE), record.token)],
    )
    rows = pa.table({"id": pa.array([value], pa.int64())})
    write_deltalake(tables.locate(TARGET), rows, mode="append", commit_properties=properties)


def foreign_append(tables: DeltaTarget) -> None:
    write_deltalake(tables.locate(TARGET), pa.table({"id": pa.array([9], pa.int64())}), mode="append")


def task(rule: TableRule | None = None, schema: TableSchema = SCHEMA) -> TableTask:
    return TableTask(TABLE, TARGET, schema, rule or TableRule(TABLE), "", TableState.PENDING)


def test_a_missing_table_has_no_state(tables: DeltaTarget) -> None:
    assert not tables.state(TABLE, TARGET).exists


def test_a_foreign_table_has_no_control_record(tables: DeltaTarget) -> None:
    foreign_append(tables)
    current = tables.state(TABLE, TARGET)
    assert (current.exists, current.control, current.token) == (True, None, None)


def test_the_newest_commit_of_ours_counts_below_a_foreign_append(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    commit(tables, control(1, 2), 2)
    foreign_append(tables)
    current = tables.state(TABLE, TARGET)
    assert current.control == control(1, 2)
    assert (current.version, current.token, current.restored) == (2, token(1, 2), False)


def test_a_control_file_that_is_gone_is_replaced_by_the_commit_itself(tables: DeltaTarget) -> None:
    commit(tables, control(1, 7), 1, named=False)
    assert tables.state(TABLE, TARGET).control == control(1, 7)


def test_a_commit_whose_history_is_gone_is_found_by_its_token(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    for _ in range(3):
        foreign_append(tables)
    DeltaTable(tables.locate(TARGET)).create_checkpoint()
    for version in range(3):
        Path(tables.locate(TARGET), "_delta_log", f"{version:020d}.json").unlink()
    assert tables.state(TABLE, TARGET).control == control(1, 1)


def test_a_foreign_restore_takes_the_cursor_back_and_the_next_fence_passes_the_old_token(tables: DeltaTarget) -> None:
    for window in (1, 2, 3):
        commit(tables, control(4, window), window)
    DeltaTable(tables.locate(TARGET)).restore(0)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored, current.token) == (control(4, 1), True, token(4, 3))
    assert current.control is not None
    fenced = tables.fence(TARGET, current, replace(current.control.fenced(), fence=2))
    after = tables.state(TABLE, TARGET)
    assert fenced.fence == 5 and after.control == fenced and fenced.window == 1
    assert not after.restored and after.token == token(5, 1)


def test_a_fence_passes_the_recorded_token_though_staging_has_lost_its_names(tables: DeltaTarget) -> None:
    for window in (1, 2):
        commit(tables, control(4, window), window, named=False)
    DeltaTable(tables.locate(TARGET)).restore(0)
    fenced = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    assert fenced.fence == 5 and tables.state(TABLE, TARGET).token == token(5, 1)


def test_a_restore_is_seen_below_many_commits_of_others(tables: DeltaTarget) -> None:
    for window in (1, 2):
        commit(tables, control(1, window), window)
    DeltaTable(tables.locate(TARGET)).restore(0)
    for _ in range(25):
        foreign_append(tables)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored) == (control(1, 1), True)


def test_a_restore_of_a_restore_is_followed_to_its_end(tables: DeltaTarget) -> None:
    for window in (1, 2, 3):
        commit(tables, control(1, window), window)
    DeltaTable(tables.locate(TARGET)).restore(0)
    foreign_append(tables)
    DeltaTable(tables.locate(TARGET)).restore(3)
    assert tables.state(TABLE, TARGET).control == control(1, 1)
    DeltaTable(tables.locate(TARGET)).restore(2)
    assert tables.state(TABLE, TARGET).control == control(1, 3)
    assert tables.state(TABLE, TARGET).restored


def test_a_restore_to_before_our_first_commit_leaves_no_record(tables: DeltaTarget) -> None:
    foreign_append(tables)
    commit(tables, control(1, 1), 1)
    DeltaTable(tables.locate(TARGET)).restore(0)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored, current.token) == (None, True, token(1, 1))


def test_the_restore_announced_by_our_own_rewind_is_not_foreign(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    commit(tables, control(1, 2), 2)
    rewinding = control(2, 2, TableState.REWINDING)
    tables.fence(TARGET, tables.state(TABLE, TARGET), rewinding)
    DeltaTable(tables.locate(TARGET)).restore(0)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored) == (rewinding, False)


def test_a_fence_changes_no_row_and_is_what_counts_next(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    current = tables.state(TABLE, TARGET)
    record = tables.fence(TARGET, current, control(1, 1).fenced())
    assert (record.fence, record.window) == (2, 1)
    assert tables.state(TABLE, TARGET).control == record
    assert DeltaTable(tables.locate(TARGET)).to_pyarrow_table().num_rows == 1


def test_a_fence_from_an_older_state_is_refused(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    current = tables.state(TABLE, TARGET)
    commit(tables, control(1, 2), 2)
    with pytest.raises(Fenced, match="TGT020"):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == control(1, 2)


def test_a_commit_between_the_read_and_the_append_of_a_fence_rejects_the_fence(
    tables: DeltaTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tables, control(1, 1), 1)
    current = tables.state(TABLE, TARGET)
    still = tables._is_unchanged

    def still_and_then_no_more(*arguments: object) -> bool:
        found = still(*arguments)  # type: ignore[arg-type]
        if found:
            commit(tables, control(1, 2), 2)
        return found

    monkeypatch.setattr(tables, "_is_unchanged", still_and_then_no_more)
    with pytest.raises(Fenced, match="TGT020"):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == control(1, 2)


def test_one_of_two_fences_from_the_same_state_wins(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    current = tables.state(TABLE, TARGET)
    first = tables.fence(TARGET, current, control(1, 1).fenced())
    with pytest.raises(Fenced):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == first


def test_a_fence_named_by_a_dead_attempt_is_skipped(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    assert tables.log.write_control(control(2, 1, attempt="dead"))
    record = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    assert record.fence == 3 and tables.state(TABLE, TARGET).control == record


def test_a_lost_answer_counts_where_the_commit_stands(tables: DeltaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tables, control(1, 1), 1)
    append = target_module.append_empty

    def append_and_lose_the_answer(*arguments: object) -> None:
        append(*arguments)  # type: ignore[arg-type]
        raise OSError("connection reset")

    monkeypatch.setattr(target_module, "append_empty", append_and_lose_the_answer)
    record = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == record


def test_a_fence_that_fails_twice_can_be_retried(tables: DeltaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tables, control(1, 1), 1)

    def lose(*arguments: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(target_module, "append_empty", lose)
    with pytest.raises(TargetUnavailable, match="TGT021"):
        tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())


def test_a_dropped_and_recreated_table_is_foreign(tables: DeltaTarget) -> None:
    import shutil

    commit(tables, control(1, 1), 1)
    before = tables.state(TABLE, TARGET)
    shutil.rmtree(tables.locate(TARGET))
    foreign_append(tables)
    current = tables.state(TABLE, TARGET)
    assert current.control is None and current.identity != before.identity
    assert [problem.code for problem in tables.check([task()])] == ["TGT012"]


def test_all_problems_of_a_table_are_reported_at_once(tables: DeltaTarget) -> None:
    text = LogicalType(Kind.TEXT)
    schema = TableSchema(TABLE, (Column("Id", text), Column("id", text), Column("_cdc_x", text)))
    rule = TableRule(TABLE, on_delete=OnDelete.SOFT, cluster_by=("nope",))
    Path(tables.locate(TARGET)).mkdir(parents=True)
    Path(tables.locate(TARGET), "notes.txt").write_text("mine")
    codes = [problem.code for problem in tables.check([task(rule, schema)])]
    assert codes == ["TGT014", "TGT015", "TGT016", "TGT017", "TGT011"]
    assert {table: problem.code for table, problem in tables.refused([task(rule, schema)]).items()} == {TABLE: "TGT014"}


def test_a_name_that_no_folder_can_have_is_refused(tables: DeltaTarget) -> None:
    named = [replace(task(), table=f"public.{length}", target="ü" * length) for length in (127, 128)]
    assert {table: problem.code for table, problem in tables.refused(named).items()} == {"public.128": "TGT054"}


def test_a_property_that_would_remove_our_commits_is_refused(tables: DeltaTarget) -> None:
    commit(tables, control(1, 1), 1)
    DeltaTable(tables.locate(TARGET)).alter.set_table_properties(
        {"delta.setTransactionRetentionDuration": "interval 7 days"}
    )
    assert [problem.code for problem in tables.check([task()])] == ["TGT013"]
    unfit = tables.state(TABLE, TARGET).unfit
    assert unfit is not None and unfit.problem.code == "TGT013" and not unfit.copy_helps


def test_a_location_that_is_missing_relative_or_remote_is_refused() -> None:
    for location in ("", "lake", "hdfs://lake"):
        target = DeltaTarget(Target("delta", location), ConnectionInfo(), "shop", ChangeLog(LocalStore("/nowhere")))
        assert [problem.code for problem in target.check([])] == ["TGT001"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [("public.Orders", "orders"), ("sales.Order Lines", "sales_order_lines"), ("orders", "orders")],
)
def test_a_source_name_becomes_a_folder_name(source: str, expected: str) -> None:
    assert default_name(source) == expected


def test_the_files_of_a_dead_copy_do_not_affect_the_next_one(tables: DeltaTarget) -> None:
    rows = [pa.table({"id": [1]})]
    assert len(write_files(tables.store, TARGET, rows, FileLayout())) == 1
    assert tables.check([task()]) == [] and not tables.state(TABLE, TARGET).exists
    Path(tables.locate(TARGET), "part-1.parquet").write_text("mine")
    assert [problem.code for problem in tables.check([task()])] == ["TGT011"]
