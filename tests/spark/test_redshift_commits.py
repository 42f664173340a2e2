"""Commits and loads of Redshift: conflicts of transactions, lost answers, locks, and copies that are swapped in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Blocked, TargetUnavailable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.database import target as commits
from airflow_cdc_provider.targets.database.names import own_lock_table
from airflow_cdc_provider.targets.database.stage import Stage
from airflow_cdc_provider.targets.redshift import server
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.once import once_at
from tests.spark.contract.redshift_kit import RedshiftKit, redshift_kit
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@pytest.fixture
def kit(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RedshiftKit]:
    with redshift_kit(spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


@pytest.fixture
def table(kit: RedshiftKit, tmp_path: Path) -> ScriptedTable:
    """A copy with one row at window 0, and window 1 not yet applied."""
    table = ScriptedTable(kit.session, tmp_path, SCHEMA, target=kit.target, secrets=kit.secrets)
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
    return table


def stored_rows(kit: RedshiftKit) -> list[tuple[object, ...]]:
    return sorted(kit.rows("id", "v"))


class Passages:
    """A failpoint that counts how often the process passes ``point``, and calls ``action`` at the first time."""

    def __init__(self, point: str, action: object = None) -> None:
        self.point, self.passed = point, 0
        self._act = once_at(point, action if callable(action) else lambda: None)

    def __call__(self, name: str) -> None:
        self.passed += name == self.point
        self._act(name)


def test_a_commit_that_redshift_refuses_as_not_serializable_is_repeated(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = Passages("commit.before", lambda: kit.arm("conflict"))
    monkeypatch.setattr(commits, "failpoint", passages)
    staged, _ = table.staged()
    assert table.merged(staged).outcome is Outcome.DONE
    assert passages.passed == 2 and stored_rows(kit) == [(1, "b"), (2, "c")]


def test_a_writer_whose_transaction_forms_a_cycle_with_the_commit_makes_it_repeat(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer reads the table without the changes of the commit, which has read it without the row of the writer."""

    def write() -> None:
        with psycopg.connect(kit.server.postgres.dsn()) as connection:
            connection.execute(f"SELECT count(*) FROM {kit.schema}.t".encode())
            connection.execute(f"INSERT INTO {kit.schema}.t VALUES (9, 'foreign', '')".encode())

    passages = Passages("commit.before", write)
    monkeypatch.setattr(commits, "failpoint", passages)
    staged, _ = table.staged()
    assert table.merged(staged).outcome is Outcome.DONE
    assert passages.passed == 2 and stored_rows(kit) == [(1, "b"), (2, "c"), (9, "foreign")]


def test_a_commit_that_conflicts_each_time_is_given_up_and_changes_nothing(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_cdc_provider.targets.database.conflicts.DELAYS_S", (0.0, 0.0))

    def conflict(name: str) -> None:
        if name == "commit.before":
            kit.arm("conflict")

    monkeypatch.setattr(commits, "failpoint", conflict)
    before = control(table)
    staged, _ = table.staged()
    with pytest.raises(TargetUnavailable, match="TGT082"):
        fence(table, TableState.PAUSED)
    monkeypatch.undo()
    assert control(table) == before
    assert table.merged(staged).outcome is Outcome.DONE


@pytest.mark.parametrize(("lost", "loads"), [("lose request", 2), ("lose answer", 1)])
def test_a_load_whose_answer_is_lost_loads_the_rows_once(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch, lost: str, loads: int
) -> None:
    passages = Passages("load.before_commit", lambda: kit.arm(lost))
    monkeypatch.setattr(server, "failpoint", passages)
    table.copy([row(key, "same") for key in range(20)])
    assert passages.passed == loads
    assert stored_rows(kit) == [(key, "same") for key in range(20)] and control(table).rows == 20


def test_a_load_with_fewer_rows_than_its_files_is_refused(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Stage.write_manifest
    monkeypatch.setattr(Stage, "write_manifest", lambda stage, name, parts: listed(stage, name, parts[1:]))
    with pytest.raises(TargetUnavailable, match=r"TGT081.*found: 0 .*allowed: 1"):
        table.copy([row(7, "g")])
    assert stored_rows(kit) == [(1, "a")]


def test_a_lost_answer_of_a_fence_is_read_back(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "failpoint", once_at("commit.before", lambda: kit.arm("lose answer")))
    assert control(table) != fence(table, TableState.PAUSED) == control(table)


@contextmanager
def locked(kit: RedshiftKit, name: str) -> Iterator[None]:
    with psycopg.connect(kit.server.postgres.dsn()) as connection:
        connection.execute(f'LOCK {kit.schema}."{name}"'.encode())
        yield


def test_a_lock_that_another_session_keeps_is_reported_after_the_limit(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LOCK_LIMIT_S", 1)
    with locked(kit, own_lock_table("t")), pytest.raises(TargetUnavailable, match="TGT065"):
        fence(table, TableState.PAUSED)
    fence(table, TableState.PAUSED)


def test_a_lock_takes_no_table_from_its_readers(
    table: ScriptedTable, kit: RedshiftKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session reads the table and the cut during a commit, and sees the state before it."""
    seen: list[object] = []

    def read() -> None:
        seen.append(kit.execute("SET lock_timeout TO '5s'", f"SELECT id, v FROM {kit.schema}.t"))
        kit.execute("SET lock_timeout TO '5s'", f"SELECT * FROM {kit.schema}._cdc_published")

    monkeypatch.setattr(commits, "failpoint", once_at("commit.before", read))
    staged, _ = table.staged()
    assert table.merged(staged).outcome is Outcome.DONE
    assert seen == [[(1, "a")]]


def test_a_new_copy_keeps_the_grants_of_the_old_table(table: ScriptedTable, kit: RedshiftKit) -> None:
    role, person = f"r_{kit.schema}", f"p_{kit.schema}"
    kit.execute(
        f"CREATE ROLE {role}",
        f"CREATE ROLE {person} LOGIN",
        f"GRANT SELECT ON {kit.schema}.t TO {role}",
        f"GRANT INSERT ON {kit.schema}.t TO {person} WITH GRANT OPTION",
        f"GRANT SELECT ON {kit.schema}.t TO PUBLIC",
    )
    grants = (
        "SELECT coalesce(r.rolname, 'public'), privilege_type, is_grantable FROM pg_class,"
        " aclexplode(relacl) LEFT JOIN pg_roles r ON r.oid = grantee"
        f" WHERE pg_class.oid = '{kit.schema}.t'::regclass AND grantee <> relowner ORDER BY 1, 2"
    )
    before = kit.execute(grants)
    table.copy([row(5, "e")])
    assert len(before) == 3 and kit.execute(grants) == before and stored_rows(kit) == [(5, "e")]
    kit.execute(f"DROP OWNED BY {role}, {person}", f"DROP ROLE {role}, {person}")


def test_views_on_a_table_stop_its_replacement_with_a_message(table: ScriptedTable, kit: RedshiftKit) -> None:
    kit.execute(f"CREATE VIEW {kit.schema}.seen AS SELECT * FROM {kit.schema}.t")
    with pytest.raises(Blocked, match="TGT066"):
        table.copy([row(5, "e")])
    assert stored_rows(kit) == [(1, "a")]
    kit.execute(f"DROP VIEW {kit.schema}.seen")
    table.copy([row(6, "f")])
    assert stored_rows(kit) == [(6, "f")]


def test_a_record_longer_than_one_column_is_stored_in_pieces(table: ScriptedTable) -> None:
    state = State(TableState.PAUSED, "2026-01-01T00:00:00Z", reason="ü" * 40_000)
    table.job_tables().fence("t", table.target_state(), control(table).fenced(state))
    assert control(table).state == state


def test_a_record_longer_than_all_its_columns_is_refused_with_its_length(table: ScriptedTable) -> None:
    before = control(table)
    long = before.fenced(State(TableState.PAUSED, "2026-01-01T00:00:00Z", reason="x" * 262_140))
    with pytest.raises(Blocked, match=r"TGT083.*262,?140"):
        table.job_tables().fence("t", table.target_state(), long)
    assert control(table) == before


class ProcessEnded(Exception):
    """The end of the process at this point."""


@pytest.mark.parametrize("point", ["copy.before_swap", "copy.in_swap", "copy.after_swap"])
def test_a_copy_that_dies_between_its_statements_leaves_the_old_table_or_the_new_one(
    table: ScriptedTable, kit: RedshiftKit, point: str, monkeypatch: pytest.MonkeyPatch
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
        assert stored_rows(kit) == [(1, "a")] and control(table) == before
    table.copy([row(6, "f")])
    table.apply([table.insert(row(7, "g"))])
    assert stored_rows(kit) == [(6, "f"), (7, "g")]
    kept = kit.execute(
        f"SELECT relname FROM pg_class WHERE relnamespace = '{kit.schema}'::regnamespace AND relkind = 'r'"
    )
    assert sorted(name[:9] for (name,) in kept) == ["_cdc_cont", "_cdc_cut", "_cdc_lock", "_cdc_lock", "t"], kept
