"""The records of a batch on any target: which records count, and when a table is blocked or waits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Batch, Outcome, StepKind
from airflow_cdc_provider.core.log.change_log import manifest_path
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs import replay, stage
from tests.spark.contract.control_records import control, fence, problem
from tests.spark.contract.fold_cases import INT, KEYED, KEYLESS, TEXT, KeyedChanges, KeylessChanges
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm

OTHER = Column("p", TEXT)


def with_columns(*columns: Column) -> TableSchema:
    return TableSchema("public.t", (KEYED.columns[0], *columns), ("id",))


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> ScriptedTable:
    return ScriptedTable(spark, tmp_path, KEYED)


@pytest.fixture
def changes(table: ScriptedTable) -> KeyedChanges:
    return KeyedChanges(table, 0)


@pytest.mark.parametrize("values", [("b", "w"), ("b",)])
def test_e18_two_different_changes_of_a_row_at_one_position_block_the_table(
    table: ScriptedTable, changes: KeyedChanges, values: tuple[str, ...]
) -> None:
    table.copy([changes.row(1, "a", "w")])
    one = changes.update(1, *values)
    table.apply([one, replace(one, position="again")])
    assert table.rows() == [(1, "b", "w")], "it was delivered twice"
    one = changes.update(1, *values)
    result = table.apply(
        [one, changes.insert(2, "b", "w"), replace(one, after=changes.update(1, "c", *values[1:]).after)]
    )
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "EVT012")
    assert table.rows() == [(1, "b", "w")]


def test_a_row_that_a_copy_read_twice_at_one_position_equals_one_of_the_reads(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    """The snapshot restarted while the position in the source's log, which is written later, stayed the same."""
    table.copy([])
    one, other = (replace(changes.insert(1, value, "w"), op="read", order_key="00000001") for value in "ab")
    table.apply([one, other])
    assert table.rows() in ([(1, "a", "w")], [(1, "b", "w")])


def test_a_moved_row_without_its_origin_blocks_the_table(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.copy([changes.row(1, "a", "w")])
    result = table.apply([changes.move(5, 6, "b")])
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT031")


def test_a_partial_update_behind_a_truncate_blocks_the_table(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.copy([changes.row(1, "a", "w")])
    result = table.apply([table.truncate(), changes.update(1, "b")])
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT031")


def test_a_partial_upsert_behind_a_truncate_is_a_new_row(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.apply([table.truncate(), changes.update(1, "b", op="upsert")])
    assert table.rows() == [(1, "b", None)]


def test_a_repair_across_a_truncate_leaves_a_row_that_moved_behind_it_as_it_is(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.apply([table.truncate(), changes.insert(2, "b", "w"), changes.move(2, 3, "c")])
    before = table.rows()
    job, staged = table.staged(repair=(1, 1))
    assert staged.outcome is Outcome.DONE, staged.problem
    assert table.merged(job).outcome is Outcome.DONE
    assert table.rows() == before == [(3, "c", "w")]


def test_records_up_to_the_floor_are_in_the_copy_already(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.land([])
    early = [changes.update(1, "old", "w"), changes.delete(2, "b", "w"), changes.insert(4, "gone since", "w")]
    table.copy([changes.row(1, "new", "w"), changes.row(2, "b", "w")])
    table.apply([*early, changes.insert(3, "c", "w")])
    assert table.rows() == [(1, "new", "w"), (2, "b", "w"), (3, "c", "w")]


def test_rows_without_key_up_to_the_floor_are_in_the_copy_already(spark: SparkSession, tmp_path: Path) -> None:
    table = ScriptedTable(spark, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.land([])
    early = changes.insert("a", 1.0)
    table.copy([changes.row("a", 1.0)])
    table.apply([early, changes.insert("b", 1.0)])
    assert [row[1] for row in table.rows()] == ["a", "b"]


def test_several_windows_are_one_batch_and_windows_without_records_pass(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "b", "w")])
    table.land([])
    table.land([changes.update(1, "c")])
    assert table.apply().window == 4
    assert table.rows() == [(1, "c", "w")]
    assert table.apply().outcome is Outcome.UNCHANGED
    assert (control(table).window, control(table).hi) == (4, {"s": str(table.order)})


def test_the_bounds_of_a_batch_cover_its_keys_in_few_ranges(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.copy([changes.row(0, "a", "w")])
    table.land([changes.insert(key, "x", "w") for key in [*range(10, 20), *range(1000, 1010), 5000]])
    job, _ = table.staged()
    text = job.log.store.read(f"batches/public.t/{job.step.attempt}/batch.json")
    batch = from_plain(Batch, json.loads(text))
    assert 1 <= len(batch.bounds) <= 16
    assert all(name == "id" for name, _, _ in batch.bounds)
    assert table.merged(job).counts["inserted"] == 21


def test_an_interval_the_log_has_lost_is_not_repaired(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.apply([changes.update(1, "A", "w")])
    _, result = table.staged(repair=(0, 1))
    assert result.problem is not None and result.problem.code == "CMD010" and "oldest window 1" in result.problem.found


def test_a_keyless_table_is_not_repaired(spark: SparkSession, tmp_path: Path) -> None:
    table = ScriptedTable(spark, tmp_path, TableSchema("public.t", KEYED.columns))
    table.copy([])
    table.land([table.insert({"id": 2, "v": "b", "w": None})])
    _, result = table.staged(repair=(1, 1))
    assert result.problem is not None and "no key" in result.problem.found


def test_an_attempt_that_was_fenced_before_its_read_does_not_continue_under_the_new_fence(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "b", "w")])
    task = table.task()
    fence(table)
    for job, run in (
        (table.job(StepKind.STAGE, (task,)), stage.run),
        (table.job(StepKind.REPLAY, (task,)), replay.run),
    ):
        (result,) = run(job).tables
        assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT035")
    assert table.rows() == [(1, "a", "w")]


def test_a_paused_table_applies_nothing_and_a_resyncing_one_only_the_replay(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "b", "w")])
    fence(table, TableState.PAUSED)
    assert table.staged()[1].outcome is Outcome.FENCED
    fence(table, TableState.RESYNCING)
    assert table.staged()[1].outcome is Outcome.FENCED
    result = replay.run(table.job(StepKind.REPLAY, (table.task(),))).tables[0]
    assert result.outcome is Outcome.DONE
    assert table.rows() == [(1, "b", "w")] and control(table).state.name is TableState.RESYNCING


def test_a_damaged_missing_or_incomplete_log_blocks_before_anything_is_applied(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "b", "w"), changes.insert(2, "c", "w")])
    window = table.log.manifest(1).tables["public.t"].files[0]
    file = Path(table.log.store.url(window.path))
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert problem(table.staged()[1]) == "STG005"
    file.unlink()
    assert problem(table.staged()[1]) == "STG005"
    file.write_bytes(content)
    manifest = Path(table.log.store.url(manifest_path(1)))
    sealed = manifest.read_bytes()
    manifest.write_bytes(sealed.replace(b'"rows": 2', b'"rows": 3'))
    assert problem(table.staged()[1]) == "STG002"
    manifest.unlink()
    assert problem(table.staged()[1]) == "STG001"
    manifest.write_bytes(sealed)
    job, result = table.staged()
    assert result.outcome is Outcome.DONE and table.merged(job).outcome is Outcome.DONE


def test_a_schema_change_that_the_copy_holds_already_is_passed_over(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    """The first window after a resync may begin before its anchor."""
    table.copy([changes.row(1, "a", "w")])
    early = [changes.update(1, "A", "w"), table.alter(with_columns(OTHER))]
    table.copy([{"id": 1, "p": "P"}])
    assert table.apply([*early, table.insert({"id": 2, "p": "Q"})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "P"), (2, "Q")]


def test_a_breaking_change_blocks_after_all_earlier_changes_are_applied(
    table: ScriptedTable, changes: KeyedChanges
) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "A", "w")])
    table.land([table.alter(with_columns(Column("v", INT))), table.insert({"id": 9, "v": 5})])
    job, result = table.staged()
    assert (result.outcome, result.window) == (Outcome.BLOCKED, 1)
    assert result.problem is not None and "resync hand --table public.t" in result.problem.do
    assert table.merged(job).window == 1
    assert (1, "A") in {values[:2] for values in table.rows()}
    _, result = table.staged()
    assert (result.outcome, result.window) == (Outcome.BLOCKED, 1)


def test_an_added_column_whose_older_values_are_unknown_blocks(table: ScriptedTable, changes: KeyedChanges) -> None:
    table.copy([changes.row(1, "a", "w")])
    table.land([table.alter(with_columns(*KEYED.columns[1:], OTHER), warnings=["initial_unknown"])])
    _, result = table.staged()
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and "is unknown: p" in result.problem.found
