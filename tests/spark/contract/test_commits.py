"""Who may commit: fences, lost answers, other writers, restores. Rows are applied once or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from tests.spark.contract.control_records import control, fence, problem
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT)), ("id",))
APPLIED = [(1, "b"), (2, "c")]


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> ScriptedTable:
    """A copy with one row at window 0, and window 1 not yet applied."""
    table = KitTable(kit, tmp_path, SCHEMA)
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
    return table


def test_a_batch_applies_once_and_not_under_an_old_fence(table: ScriptedTable) -> None:
    before = table.target_state()
    early, _ = table.staged()
    raised = fence(table)
    assert before.control is not None
    with pytest.raises(Fenced):
        table.job(StepKind.STAGE, ()).tables.fence("t", before, before.control.fenced())
    result = table.merged(early)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT034")
    assert table.rows() == [(1, "a")]
    late, _ = table.staged()
    assert table.merged(late).counts == {"inserted": 1, "updated": 1, "deleted": 0}
    assert table.rows() == APPLIED and (control(table).fence, control(table).window) == (raised.fence, 1)
    again = table.merged(late)
    assert (again.outcome, problem(again)) == (Outcome.FENCED, "TGT034")
    assert table.rows() == APPLIED


def test_a_fence_raised_during_a_merge_rejects_its_commit(
    table: ScriptedTable, kit: TargetKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, _ = table.staged()
    kit.meanwhile(monkeypatch, lambda: fence(table))
    result = table.merged(staged)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT030")
    assert table.rows() == [(1, "a")] and control(table).window == 0


def test_a_commit_named_by_a_dead_attempt_raises_the_fence_of_the_next_attempt(table: ScriptedTable) -> None:
    staged, _ = table.staged()
    before = control(table)
    assert table.log.write_control(replace(before, window=1, attempt="dead", nonce="dead"))
    result = table.merged(staged)
    assert (result.outcome, result.fence, result.window) == (Outcome.DONE, before.fence + 1, 1)
    assert table.rows() == APPLIED


def test_one_of_two_concurrent_merges_of_a_batch_applies(table: ScriptedTable) -> None:
    staged, _ = table.staged()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(table.merged, [staged, staged]))
    assert sorted(result.outcome for result in results) == [Outcome.DONE, Outcome.FENCED]
    assert table.rows() == APPLIED and control(table).window == 1


@pytest.mark.parametrize("reply", [True, False], ids=["the reply", "the request"])
def test_a_merge_that_loses_a_message_is_applied_once(table: ScriptedTable, kit: TargetKit, reply: bool) -> None:
    staged, _ = table.staged()
    with kit.lose(reply):
        result = table.merged(staged)
    if result.outcome is not Outcome.DONE:
        assert not reply and result.outcome is Outcome.FAILING and table.rows() == [(1, "a")]
        result = table.merged(staged)
    assert result.outcome is Outcome.DONE
    assert table.rows() == APPLIED and control(table).window == 1


def test_upkeep_and_rows_of_another_client_lose_no_change_and_the_cursor_is_found_below_them(
    table: ScriptedTable, kit: TargetKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.write("INSERT INTO {t} VALUES (9, 'z', '00000000')")
    staged, _ = table.staged()
    kit.meanwhile(monkeypatch, kit.compact)
    assert table.merged(staged).outcome is Outcome.DONE
    kit.compact()
    assert table.rows() == [*APPLIED, (9, "z")]
    assert control(table).window == 1 and not table.target_state().restored


def test_a_table_restored_by_another_client_is_brought_up_to_date_from_the_cursor_of_its_rows(
    table: ScriptedTable, kit: TargetKit
) -> None:
    """If the target keeps versions, the highest token ever recorded remains known: nothing is applied until the
    fence is above it. A backup restores the cursor with the rows: the restore is not visible and needs no fence."""
    copied = kit.version()
    table.apply([table.insert(row(3, "d"))])
    kit.restore(copied)
    assert table.target_state().restored == kit.keeps_versions
    if kit.keeps_versions:
        _, result = table.staged()
        assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT033")
        fence(table)
    assert control(table).window == 0
    job, result = table.staged()
    assert result.outcome is Outcome.DONE and table.merged(job).window == 2
    assert table.rows() == [*APPLIED, (3, "d")]


def test_a_table_dropped_or_created_by_another_client_blocks_and_a_copy_starts_above_every_fence(
    table: ScriptedTable, kit: TargetKit
) -> None:
    before = fence(table)
    identity = table.target_state().identity
    kit.drop()
    _, result = table.staged()
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT012")
    kit.create()
    _, result = table.staged()
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT012")
    current = table.target_state()
    assert current.exists and current.control is None and current.identity != identity
    (found,) = table.job(StepKind.STAGE, ()).tables.check((table.task(),))
    assert found.code == "TGT012"
    kit.drop()
    table.copy([row(5, "new")])
    assert control(table).fence > before.fence
    table.apply([table.insert(row(6, "f"))])
    assert table.rows() == [(5, "new"), (6, "f")]
