"""Who may commit to a database, and what a lost connection, a drop or a dead attempt leaves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.states import State, TableState
from airflow_cdc_provider.core.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import STAGED, staging_table
from airflow_cdc_provider.targets.postgres import server as postgres_server
from tests.spark.databases import Database
from tests.spark.hand_made import HandMade, Row
from tests.spark.lossy_proxy import Lose, LossyProxy

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@pytest.fixture
def proxy(warehouse: Database) -> Iterator[LossyProxy]:
    with LossyProxy(warehouse.port) as proxy:
        yield proxy


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, warehouse: Database) -> HandMade:
    """A copy with one row at window 0, and window 1 not yet applied."""
    return prepared(warehouse.table(spark, tmp_path, SCHEMA))


def prepared(table: HandMade) -> HandMade:
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


def held_rows(warehouse: Database) -> list[tuple[object, ...]]:
    return warehouse.rows(("id", "v"))


APPLIED = [(1, "b"), (2, "c")]


def test_a_batch_applies_once_and_never_under_an_old_fence(table: HandMade, warehouse: Database) -> None:
    early, _ = table.staged()
    raised = fence(table)
    result = table.merged(early)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT034")
    assert held_rows(warehouse) == [(1, "a")]
    late, _ = table.staged()
    assert table.merged(late).counts == {"inserted": 1, "updated": 1, "deleted": 0}
    assert table.merged(late).outcome is Outcome.FENCED
    assert held_rows(warehouse) == APPLIED
    assert (control(table).fence, control(table).window) == (raised.fence, 1)


def test_a_fence_that_comes_while_a_merge_is_under_way_shuts_it_out(
    table: HandMade, warehouse: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, _ = table.staged()
    settle = commits.merge

    def after_a_fence(*arguments: object) -> object:
        fence(table)
        return settle(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("spark_jobs.writers.database.merge", after_a_fence)
    result = table.merged(staged)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT030")
    assert held_rows(warehouse) == [(1, "a")] and control(table).window == 0


def test_a_fence_on_a_table_that_has_moved_is_refused(table: HandMade) -> None:
    held = table.held()
    assert held.control is not None
    fence(table)
    with pytest.raises(Fenced):
        table.job(StepKind.STAGE, ()).tables.fence("t", held, held.control.fenced())


def test_of_two_merges_of_one_batch_at_once_one_applies(table: HandMade, warehouse: Database) -> None:
    staged, _ = table.staged()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(table.merged, [staged, staged]))
    assert Outcome.DONE in [result.outcome for result in results]
    assert sum(result.outcome is Outcome.DONE for result in results) == 1
    assert held_rows(warehouse) == APPLIED and control(table).window == 1


def test_a_commit_named_by_an_attempt_that_died_raises_the_fence_and_goes_on(
    table: HandMade, warehouse: Database
) -> None:
    staged, _ = table.staged()
    before = control(table)
    assert table.log.write_control(replace(before, window=1, attempt="dead", nonce="dead"))
    result = table.merged(staged)
    assert (result.outcome, result.fence, result.window) == (Outcome.DONE, before.fence + 1, 1)
    assert held_rows(warehouse) == APPLIED


@pytest.mark.parametrize("lose", [Lose.ANSWER, Lose.REQUEST])
def test_a_lost_commit_is_read_back_or_made_again(
    spark: SparkSession,
    tmp_path: Path,
    warehouse: Database,
    proxy: LossyProxy,
    lose: Lose,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = prepared(replace(warehouse, port=proxy.port).table(spark, tmp_path, SCHEMA))
    monkeypatch.setattr(commits, "failpoint", lambda name: arm(proxy, lose) if name == "merge.before_commit" else None)
    staged, _ = table.staged()
    result = table.merged(staged)
    assert result.outcome is Outcome.DONE and proxy.lost >= 1
    assert held_rows(warehouse) == APPLIED and control(table).window == 1
    assert table.merged(staged).outcome is Outcome.FENCED


def arm(proxy: LossyProxy, lose: Lose) -> None:
    if not proxy.lost:
        proxy.lose = lose


def test_a_lost_answer_of_a_fence_is_read_back(
    spark: SparkSession, tmp_path: Path, warehouse: Database, proxy: LossyProxy
) -> None:
    table = prepared(replace(warehouse, port=proxy.port).table(spark, tmp_path, SCHEMA))
    proxy.lose = Lose.ANSWER
    raised = fence(table, TableState.PAUSED)
    assert proxy.lost == 1 and control(table) == raised


def test_a_table_dropped_or_made_by_somebody_else_blocks(table: HandMade, warehouse: Database) -> None:
    warehouse.execute(f"DROP TABLE {warehouse.schema}.t")
    _, result = table.staged()
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "TGT012")
    warehouse.execute(f"CREATE TABLE {warehouse.schema}.t (id INT)")
    held = table.held()
    assert held.exists and held.control is None
    (found,) = table.job(StepKind.STAGE, ()).tables.check((table.task(),))
    assert found.code == "TGT012"


def test_a_dropped_table_is_copied_anew_above_every_fence_it_had(table: HandMade, warehouse: Database) -> None:
    before = fence(table)
    warehouse.execute(f"DROP TABLE {warehouse.schema}.t")
    table.copy([row(9, "new")])
    assert held_rows(warehouse) == [(9, "new")] and control(table).fence > before.fence
    assert len(warehouse.execute(f"SELECT * FROM {warehouse.schema}._cdc_control")) == 1


def test_what_dead_attempts_left_is_gone_behind_the_next_one(table: HandMade, warehouse: Database) -> None:
    staged, _ = table.staged()
    dead = staging_table("t", STAGED, "dead")
    warehouse.execute(
        f"CREATE TABLE {warehouse.schema}.{dead} (id INT)",
        f"INSERT INTO {warehouse.schema}._cdc_loads VALUES ('{dead}', 0, 5)",
    )
    assert table.merged(staged).outcome is Outcome.DONE
    assert warehouse.tables() == ["_cdc_control", "_cdc_loads", "t"]
    assert warehouse.execute(f"SELECT * FROM {warehouse.schema}._cdc_loads") == []


def test_a_new_copy_replaces_rows_and_cursor_at_once_and_keeps_the_rights_of_others(
    table: HandMade, warehouse: Database
) -> None:
    if warehouse.kind == "postgres":
        role = f"reader_{warehouse.schema}"
        warehouse.execute(f"CREATE ROLE {role}", f"GRANT SELECT ON {warehouse.schema}.t TO {role}")
    fence(table, TableState.RESYNCING)
    table.copy([row(5, "e")], TableState.RESYNCING)
    assert held_rows(warehouse) == [(5, "e")] and control(table).window == 1
    if warehouse.kind == "postgres":
        granted = f"SELECT has_table_privilege('{role}', '{warehouse.schema}.t', 'SELECT')"
        assert warehouse.execute(granted) == [(True,)]
        warehouse.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_views_on_a_table_in_postgres_stop_its_replacement_with_words(table: HandMade, warehouse: Database) -> None:
    if warehouse.kind != "postgres":
        pytest.skip("views of MySQL follow the name")
    warehouse.execute(f"CREATE VIEW {warehouse.schema}.seen AS SELECT * FROM {warehouse.schema}.t")
    with pytest.raises(Exception, match=r"TGT066.*seen"):
        table.copy([row(5, "e")])
    assert held_rows(warehouse) == [(1, "a")]


class Died(Exception):
    """A process that ended here."""


@pytest.mark.parametrize("place", ["copy.before_swap", "copy.in_swap", "copy.after_swap"])
def test_a_copy_that_dies_between_its_statements_leaves_the_old_table_or_the_new_one(
    table: HandMade, warehouse: Database, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = control(table)

    def die(name: str) -> None:
        if name == place:
            raise Died(name)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_server, "failpoint", die)
        patch.setattr("airflow_cdc_provider.targets.mysql.server.failpoint", die)
        with pytest.raises(Died):
            table.copy([row(5, "e")])
    if place == "copy.after_swap":
        assert held_rows(warehouse) == [(5, "e")] and control(table).fence > before.fence
    else:
        assert held_rows(warehouse) == [(1, "a")] and control(table) == before
    table.copy([row(6, "f")])
    table.apply([table.insert(row(7, "g"))])
    assert held_rows(warehouse) == [(6, "f"), (7, "g")]
    assert warehouse.tables() == ["_cdc_control", "_cdc_loads", "t"]
    assert len(warehouse.execute(f"SELECT * FROM {warehouse.schema}._cdc_control")) == 1
