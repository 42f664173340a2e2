"""Commits in a database: lost answers, tables of dead attempts, copies that are swapped in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Blocked, TargetUnavailable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.database.names import STAGED, staging_prefix, staging_table
from airflow_cdc_provider.targets.postgres import server as postgres_server
from tests.spark.contract.control_records import control, fence
from tests.spark.databases import Database, ignore_case
from tests.spark.lossy_proxy import Lose, LossyProxy
from tests.spark.scripted_table import Row, ScriptedTable

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
def table(spark: SparkSession, tmp_path: Path, warehouse: Database) -> ScriptedTable:
    """A copy with one row at window 0, and window 1 not yet applied."""
    return prepared(warehouse.table(spark, tmp_path, SCHEMA))


def prepared(table: ScriptedTable) -> ScriptedTable:
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
    return table


def stored_rows(warehouse: Database) -> list[tuple[object, ...]]:
    return warehouse.rows(("id", "v"))


def test_a_lost_answer_of_a_fence_is_read_back(
    spark: SparkSession, tmp_path: Path, warehouse: Database, proxy: LossyProxy
) -> None:
    table = prepared(replace(warehouse, port=proxy.port).table(spark, tmp_path, SCHEMA))
    proxy.lose = Lose.ANSWER
    raised = fence(table, TableState.PAUSED)
    assert proxy.lost == 1 and control(table) == raised


def test_a_table_whose_texts_ignore_case_is_replaced_by_another_copy(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    code = Column("code", LogicalType(Kind.TEXT), nullable=False)
    table = warehouse.table(spark, tmp_path, TableSchema("public.t", (code,), ("code",)))
    table.copy([{"code": "a"}])
    assert table.target_state().unfit is None
    ignore_case(warehouse, "t", "code")
    unfit = table.target_state().unfit
    assert unfit is not None and unfit.copy_helps and unfit.problem.code == "TGT094"
    table.copy([{"code": "a"}, {"code": "A"}])
    assert table.target_state().unfit is None
    table.apply([table.delete({"code": "a"})])
    assert warehouse.rows(["code"]) == [("A",)]


def test_the_next_attempt_removes_the_tables_of_dead_attempts(table: ScriptedTable, warehouse: Database) -> None:
    staged, _ = table.staged()
    dead = staging_table("t", STAGED, "dead")
    warehouse.execute(
        f"CREATE TABLE {warehouse.schema}.{dead} (id INT)",
        f"INSERT INTO {warehouse.schema}._cdc_loads VALUES ('{dead}', 0, 5)",
    )
    assert table.merged(staged).outcome is Outcome.DONE
    assert warehouse.tables() == ["_cdc_control", "_cdc_cut", "_cdc_loads", "_cdc_published", "t"]
    assert warehouse.execute(f"SELECT * FROM {warehouse.schema}._cdc_loads") == []


def test_staged_rows_that_the_server_lost_are_loaded_again(
    table: ScriptedTable, warehouse: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL empties unlogged tables after a crash, and a promoted standby has none of their rows."""

    def crash(name: str) -> None:
        if name == "merge.before_submit":
            (staged,) = (found for found in warehouse.tables() if found.startswith(f"{staging_prefix('t')}{STAGED}_"))
            warehouse.execute(f"TRUNCATE TABLE {warehouse.schema}.{staged}")

    before, (staged, _) = control(table), table.staged()
    with monkeypatch.context() as patch:
        patch.setattr("spark_jobs.writers.database.failpoint", crash)
        lost = table.merged(staged)
    assert lost.outcome is Outcome.FAILING and lost.problem is not None
    assert (lost.problem.code, lost.problem.found, lost.problem.allowed) == ("TGT081", "0", "2")
    assert stored_rows(warehouse) == [(1, "a")] and control(table) == before
    assert table.merged(staged).outcome is Outcome.DONE
    assert stored_rows(warehouse) == [(1, "b"), (2, "c")]


def test_a_copy_of_which_the_server_lost_rows_does_not_replace_the_old_one(
    table: ScriptedTable, warehouse: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(server: object, shadow: str, *more: object) -> None:
        warehouse.execute(f"DELETE FROM {warehouse.schema}.{shadow} WHERE id = 5")

    with monkeypatch.context() as patch:
        patch.setattr("spark_jobs.writers.database.index_shadow_table", crash)
        with pytest.raises(TargetUnavailable, match=r"TGT081.*found: 1 .*allowed: 2"):
            table.copy([row(5, "e"), row(6, "f")])
    assert stored_rows(warehouse) == [(1, "a")]
    table.copy([row(5, "e"), row(6, "f")])
    assert stored_rows(warehouse) == [(5, "e"), (6, "f")]


@pytest.mark.parametrize("warehouse", ["postgres"], indirect=True)
def test_a_new_copy_keeps_the_grants_of_the_old_table(table: ScriptedTable, warehouse: Database) -> None:
    """In MySQL they belong to the name."""
    role = f"reader_{warehouse.schema}"
    warehouse.execute(f"CREATE ROLE {role}", f"GRANT SELECT ON {warehouse.schema}.t TO {role}")
    table.copy([row(5, "e")])
    granted = f"SELECT has_table_privilege('{role}', '{warehouse.schema}.t', 'SELECT')"
    assert warehouse.execute(granted) == [(True,)]
    warehouse.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize("warehouse", ["postgres"], indirect=True)
def test_views_on_a_table_stop_its_replacement_before_rows_are_loaded(
    table: ScriptedTable, warehouse: Database
) -> None:
    """In MySQL they follow the name."""
    warehouse.execute(f"CREATE VIEW {warehouse.schema}.seen AS SELECT * FROM {warehouse.schema}.t")
    with pytest.raises(Blocked, match=r"TGT066.*seen"):
        table.copy([row(5, "e")])
    assert stored_rows(warehouse) == [(1, "a")]
    assert warehouse.tables() == ["_cdc_control", "_cdc_cut", "_cdc_loads", "_cdc_published", "seen", "t"]


@pytest.mark.parametrize("warehouse", ["postgres"], indirect=True)
def test_a_column_is_added_in_the_commit_of_its_values(
    table: ScriptedTable, warehouse: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In MySQL the statement ends the transaction."""

    def die(name: str) -> None:
        if name == "commit.before":
            raise ProcessEnded(name)

    more = Column("more", LogicalType(Kind.TEXT))
    table.land([table.alter(replace(SCHEMA, columns=(*SCHEMA.columns, more)))])
    with monkeypatch.context() as patch:
        patch.setattr("airflow_cdc_provider.targets.database.target.failpoint", die)
        staged, _ = table.staged()
        assert table.merged(staged).outcome is Outcome.FAILING
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 't' AND table_schema = "
    before = warehouse.execute(f"{columns} '{warehouse.schema}'")
    assert ("more",) not in before
    assert table.merged(staged).outcome is Outcome.DONE
    assert set(warehouse.execute(f"{columns} '{warehouse.schema}'")) == {*before, ("more",)}


class ProcessEnded(Exception):
    """The end of the process at this point."""


@pytest.mark.parametrize("point", ["copy.before_swap", "copy.in_swap", "copy.after_swap"])
def test_a_copy_that_dies_between_its_statements_leaves_the_old_table_or_the_new_one(
    table: ScriptedTable, warehouse: Database, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = control(table)

    def die(name: str) -> None:
        if name == point:
            raise ProcessEnded(name)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_server, "failpoint", die)
        patch.setattr("airflow_cdc_provider.targets.mysql.server.failpoint", die)
        with pytest.raises(ProcessEnded):
            table.copy([row(5, "e")])
    if point == "copy.after_swap":
        assert stored_rows(warehouse) == [(5, "e")] and control(table).fence > before.fence
    else:
        assert stored_rows(warehouse) == [(1, "a")] and control(table) == before
    table.copy([row(6, "f")])
    table.apply([table.insert(row(7, "g"))])
    assert stored_rows(warehouse) == [(6, "f"), (7, "g")]
    assert warehouse.tables() == ["_cdc_control", "_cdc_cut", "_cdc_loads", "_cdc_published", "t"]
    assert len(warehouse.execute(f"SELECT * FROM {warehouse.schema}._cdc_control")) == 1
