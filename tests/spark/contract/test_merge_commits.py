"""Who may commit: fences, lost answers, restores, damaged logs. Rows are applied once or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.changelog import manifest_path
from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.states import State, TableState
from airflow_cdc_provider.core.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from spark_jobs import replay, stage
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT)), ("id",))


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> HandMade:
    """A copy with one row at window 0, and window 1 not yet applied."""
    table = KitTable(kit, tmp_path, SCHEMA)
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
    return table


def fence(table: HandMade, state: TableState = TableState.REPLICATING) -> ControlRecord:
    held = table.held()
    assert held.control is not None
    record = held.control.fenced(State(state, "2026-01-01T00:00:00Z"))
    return table.job(StepKind.STAGE, ()).tables.fence("t", held, record)


def control(table: HandMade) -> ControlRecord:
    found = table.held().control
    assert found is not None
    return found


def problem(result: TableResult) -> str:
    assert result.problem is not None
    return result.problem.code


def test_a_batch_staged_before_a_fence_is_not_applied_and_one_staged_after_it_is(table: HandMade) -> None:
    early, _ = table.staged()
    fence(table)
    result = table.merged(early)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT034")
    assert table.rows() == [(1, "a")]
    late, _ = table.staged()
    assert table.merged(late).counts == {"inserted": 1, "updated": 1, "deleted": 0}
    assert table.rows() == [(1, "b"), (2, "c")]
    again = table.merged(late)
    assert (again.outcome, problem(again)) == (Outcome.FENCED, "TGT034")


def test_an_attempt_that_was_shut_out_before_it_looked_does_not_go_on_under_the_new_fence(table: HandMade) -> None:
    told = table.task()
    fence(table)
    for job, run in (
        (table.job(StepKind.STAGE, (told,)), stage.run),
        (table.job(StepKind.REPLAY, (told,)), replay.run),
    ):
        (result,) = run(job).tables
        assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT035")
    assert table.rows() == [(1, "a")]


def test_a_fence_that_comes_while_a_merge_is_under_way_shuts_it_out(
    table: HandMade, kit: TargetKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, _ = table.staged()
    kit.meanwhile(monkeypatch, lambda: fence(table))
    result = table.merged(staged)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT030")
    assert table.rows() == [(1, "a")] and control(table).window == 0


def test_a_commit_named_by_an_attempt_that_died_raises_the_fence_and_goes_on(table: HandMade) -> None:
    staged, _ = table.staged()
    before = control(table)
    assert table.log.write_control(replace(before, window=1, attempt="dead", nonce="dead"))
    result = table.merged(staged)
    assert (result.outcome, result.fence, result.window) == (Outcome.DONE, before.fence + 1, 1)
    assert table.rows() == [(1, "b"), (2, "c")]


def test_of_two_merges_of_one_batch_at_once_one_applies(table: HandMade) -> None:
    staged, _ = table.staged()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(table.merged, [staged, staged]))
    assert sorted(result.outcome for result in results) == [Outcome.DONE, Outcome.FENCED]
    assert table.rows() == [(1, "b"), (2, "c")] and control(table).window == 1


def test_a_merge_whose_answer_is_lost_counts_as_done(table: HandMade, kit: TargetKit) -> None:
    staged, _ = table.staged()
    with kit.lose(reply=True):
        assert table.merged(staged).outcome is Outcome.DONE
    assert table.rows() == [(1, "b"), (2, "c")] and control(table).window == 1


def test_a_merge_that_is_lost_on_its_way_is_applied_once_in_the_end(table: HandMade, kit: TargetKit) -> None:
    staged, _ = table.staged()
    with kit.lose(reply=False):
        result = table.merged(staged)
    if result.outcome is not Outcome.DONE:
        assert result.outcome is Outcome.FAILING and table.rows() == [(1, "a")]
        result = table.merged(staged)
    assert result.outcome is Outcome.DONE
    assert table.rows() == [(1, "b"), (2, "c")] and control(table).window == 1


def test_a_compaction_while_a_merge_is_under_way_costs_no_change(
    table: HandMade, kit: TargetKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, _ = table.staged()
    kit.meanwhile(monkeypatch, kit.compact)
    assert table.merged(staged).outcome is Outcome.DONE
    assert table.rows() == [(1, "b"), (2, "c")] and control(table).window == 1


def test_rows_that_somebody_else_writes_stay_and_the_cursor_is_found_below_them(
    table: HandMade, kit: TargetKit
) -> None:
    kit.write("INSERT INTO {t} VALUES (9, 'z', '00000000')")
    staged, _ = table.staged()
    assert table.merged(staged).outcome is Outcome.DONE
    kit.compact()
    assert table.rows() == [(1, "b"), (2, "c"), (9, "z")] and control(table).window == 1


def test_a_foreign_restore_stops_the_table_until_the_fence_is_raised_and_the_log_applies_again(
    table: HandMade, kit: TargetKit
) -> None:
    copied = kit.version()
    table.apply([table.insert(row(3, "d"))])
    kit.restore(copied)
    _, result = table.staged()
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT033")
    assert fence(table).window == 0
    job, result = table.staged()
    assert result.outcome is Outcome.DONE and table.merged(job).window == 2
    assert table.rows() == [(1, "b"), (2, "c"), (3, "d")]


def test_a_table_dropped_or_made_by_somebody_else_blocks(table: HandMade, kit: TargetKit) -> None:
    before = table.held().identity
    kit.drop()
    _, result = table.staged()
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT012")
    kit.create()
    _, result = table.staged()
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT012")
    assert table.held().identity != before


def test_a_paused_table_takes_nothing_and_a_resyncing_one_only_the_replay(table: HandMade) -> None:
    fence(table, TableState.PAUSED)
    assert table.staged()[1].outcome is Outcome.FENCED
    fence(table, TableState.RESYNCING)
    assert table.staged()[1].outcome is Outcome.FENCED
    result = replay.run(table.job(StepKind.REPLAY, (table.task(),))).tables[0]
    assert result.outcome is Outcome.DONE
    assert table.rows() == [(1, "b"), (2, "c")] and control(table).state.name is TableState.RESYNCING


def test_a_damaged_missing_or_incomplete_log_blocks_before_anything_is_applied(table: HandMade) -> None:
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
