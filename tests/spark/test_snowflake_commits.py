"""Commits and copies of Snowflake: transactions that are aborted from outside, locks of dead sessions, lost answers,
and swaps after their commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import snowflake.connector
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Fenced, TargetUnavailable
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.database import target as commits
from airflow_cdc_provider.targets.database.commit import Commit
from airflow_cdc_provider.targets.database.names import own_control_table
from airflow_cdc_provider.targets.snowflake import server, session, transactions
from airflow_cdc_provider.targets.snowflake.target import SnowflakeTarget
from spark_jobs.engines import choice, local_fold
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.once import once_at
from tests.spark.contract.snowflake_kit import DATABASE, SnowflakeKit, quoted, snowflake_kit
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)


TABLES = ["T", "_CDC_CONT", "_CDC_CUT"]
"""The first characters of the names of all tables at rest."""


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@pytest.fixture
def kit(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SnowflakeKit]:
    with snowflake_kit(spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


@pytest.fixture
def table(kit: SnowflakeKit, tmp_path: Path) -> ScriptedTable:
    """A copy with one row at window 0, and window 1 not yet applied."""
    table = ScriptedTable(kit.session, tmp_path, SCHEMA, target=kit.target, secrets=kit.secrets)
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
    return table


def target_of(table: ScriptedTable) -> SnowflakeTarget:
    target = table.job_tables()
    assert isinstance(target, SnowflakeTarget)
    return target


def stored_rows(kit: SnowflakeKit) -> list[tuple[object, ...]]:
    return sorted(kit.rows("id", "v"))


def abort_transactions(kit: SnowflakeKit) -> None:
    found = kit.execute("SHOW TRANSACTIONS")
    assert found, "no transaction is open"
    kit.execute(*(f"SELECT SYSTEM$ABORT_TRANSACTION({number})" for number, *_ in found))


def test_more_changes_than_the_driver_merges_elsewhere_need_no_spark(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (choice, local_fold):
        monkeypatch.setattr(module, "LOCAL_ROWS", 1)
    monkeypatch.setattr(local_fold, "PIECE_BYTES", 1)
    staged, folded = table.staged()
    merged = table.merged(staged)
    assert [str(result.engine) for result in (folded, merged)] == ["local: 2 rows", "local: 2 rows"]
    assert stored_rows(kit) == [(1, "b"), (2, "c")]


def test_a_transaction_that_is_aborted_before_the_cursor_moves_is_repeated_as_a_whole(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session goes on in another transaction, in which the rows are not changed."""
    advance, aborted = Commit.advance, once_at("advance", lambda: abort_transactions(kit))

    def aborted_before(*arguments: Any) -> Any:
        aborted("advance")
        return advance(*arguments)

    monkeypatch.setattr(Commit, "advance", aborted_before)
    staged, _ = table.staged()
    assert table.merged(staged).outcome is Outcome.DONE
    assert stored_rows(kit) == [(1, "b"), (2, "c")] and control(table).window == 1


def test_a_transaction_that_is_aborted_at_its_commit_is_repeated(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COMMIT without a transaction is no error."""
    aborted_at_its_commit(kit, commits, "commit.before", monkeypatch)
    staged, _ = table.staged()
    assert table.merged(staged).outcome is Outcome.DONE
    assert stored_rows(kit) == [(1, "b"), (2, "c")] and control(table).window == 1


def test_a_copy_whose_transaction_is_aborted_at_its_commit_gets_the_name_with_its_control_row(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    aborted_at_its_commit(kit, server, "copy.before_swap", monkeypatch)
    table.copy([row(5, "e")])
    assert stored_rows(kit) == [(5, "e")] and control(table).rows == 1


def aborted_at_its_commit(kit: SnowflakeKit, module: Any, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit that follows ``point`` finds no transaction."""
    real, due = snowflake.connector.SnowflakeConnection.commit, []

    def commit(connection: Any) -> None:
        if due:
            due.clear()
            abort_transactions(kit)
        real(connection)

    monkeypatch.setattr(snowflake.connector.SnowflakeConnection, "commit", commit)
    monkeypatch.setattr(module, "failpoint", once_at(point, lambda: due.append(None)))


def test_the_lock_of_a_session_without_a_client_is_taken_from_it(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes idle while another one waits for the lock."""
    monkeypatch.setitem(session.SETTINGS, "LOCK_TIMEOUT", 1)
    with holding_the_lock(table) as holder:
        gone = threading.Timer(2, lambda: requests.post(f"http://127.0.0.1:{kit.server.port}/idle", timeout=10))
        gone.start()
        assert fence(table) == control(table)
        assert not commits_its_lock(holder)
        gone.join()


def test_the_lock_of_a_session_that_works_is_not_taken_from_it(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(session.SETTINGS, "LOCK_TIMEOUT", 1)
    monkeypatch.setattr(server, "LOCK_LIMIT_S", 2)
    before = control(table)
    with holding_the_lock(table) as holder:
        with pytest.raises(TargetUnavailable, match="TGT065"):
            fence(table)
        assert commits_its_lock(holder) and control(table) == before
    fence(table)


def test_a_session_that_has_ended_is_not_idle(table: ScriptedTable) -> None:
    """Its transaction may be listed a moment before it ends."""
    target = target_of(table)
    with target.server.session("look") as connection:
        assert not transactions.is_idle(connection.cursor(), target.server.sql, session=999_999)


class Holder:
    """A session that has the lock of the table."""

    def __init__(self, target: SnowflakeTarget) -> None:
        self.target = target
        self._session = target.server.session("hold")

    def __enter__(self) -> Holder:
        self.connection = self._session.__enter__()
        self.target.server.lock_table(self.connection.cursor(), "t")
        self.transaction = self.target.server.transaction(self.connection.cursor())
        return self

    def __exit__(self, *error: object) -> None:
        self._session.__exit__(None, None, None)


def holding_the_lock(table: ScriptedTable) -> Holder:
    return Holder(target_of(table))


def commits_its_lock(holder: Holder) -> bool:
    """Whether its transaction was still there."""
    was_there = holder.target.server.transaction(holder.connection.cursor()) == holder.transaction != ""
    holder.connection.commit()
    return was_there


@pytest.mark.nightly
@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_load_that_loses_a_message_leaves_the_table_and_is_repeated_into_another_one(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(session, "NETWORK_LIMIT_S", 2)

    def lose() -> None:
        requests.post(f"http://127.0.0.1:{kit.server.port}/lose/{lost}", timeout=10)

    monkeypatch.setattr(server, "failpoint", once_at("load.before_commit", lose))
    rows = [row(key, "same") for key in range(20)]
    with pytest.raises(TargetUnavailable):
        table.copy(rows)
    assert stored_rows(kit) == [(1, "a")]
    table.copy(rows)
    assert stored_rows(kit) == [(key, "same") for key in range(20)] and control(table).rows == 20


def test_a_commit_between_the_commit_of_a_copy_and_its_swap_is_rejected(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rejected = table.target_state(), []

    def commit() -> None:
        assert before.control is not None
        with pytest.raises(Fenced):
            target_of(table).commit(Commit("t", before, before.control.fenced()))
        rejected.append(True)

    monkeypatch.setattr(server, "failpoint", once_at("copy.in_swap", commit))
    table.copy([row(5, "e")])
    assert rejected and stored_rows(kit) == [(5, "e")]


def test_a_fence_is_not_lost_to_a_copy_that_stood_still_before_its_swap(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[ControlRecord] = []
    fenced = once_at("copy.in_swap", lambda: raised.append(fence(table, TableState.PAUSED)))
    monkeypatch.setattr(server, "failpoint", fenced)
    with pytest.raises(Fenced):
        table.copy([row(2, "b")])
    assert raised == [control(table)] and stored_rows(kit) == [(1, "a")]


def test_a_replaced_copy_is_dropped(table: ScriptedTable, kit: SnowflakeKit) -> None:
    table.copy([row(5, "e")])
    assert tables(kit) == TABLES


class ProcessEnded(Exception):
    """The end of the process at this point."""


@pytest.mark.nightly
@pytest.mark.parametrize("point", ["copy.before_swap", "copy.in_swap", "copy.after_swap"])
def test_a_copy_that_dies_between_its_statements_leaves_the_old_table_or_the_new_one(
    table: ScriptedTable, kit: SnowflakeKit, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = control(table)

    def die() -> None:
        raise ProcessEnded

    with monkeypatch.context() as patch:
        patch.setattr(server, "failpoint", once_at(point, die))
        with pytest.raises(ProcessEnded):
            table.copy([row(5, "e")])
    if point == "copy.after_swap":
        assert stored_rows(kit) == [(5, "e")] and control(table).fence > before.fence
    else:
        assert stored_rows(kit) == [(1, "a")] and control(table).window == before.window
    table.copy([row(6, "f")])
    table.apply([table.insert(row(7, "g"))])
    assert stored_rows(kit) == [(6, "f"), (7, "g")] and tables(kit) == TABLES
    control_table = f"{DATABASE}.{kit.schema}.{quoted(own_control_table('t'))}"
    assert kit.execute(f"SELECT COUNT(*) FROM {control_table} WHERE IDENTITY <> ''") == [(1,)]


def tables(kit: SnowflakeKit) -> list[str]:
    """The first characters of their names."""
    listed = f"{DATABASE}.INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = '{kit.schema}' AND TABLE_TYPE = 'BASE TABLE'"
    return sorted(str(name)[:9] for (name,) in kit.execute(f"SELECT TABLE_NAME FROM {listed}"))
