"""A resync replaces a copy with a new exact one, and never deletes many rows without approval."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.postgres import copy as copied
from airflow_cdc_provider.connectors.sources.postgres import source
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, decision_path
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import OnDelete, OnUnrepresentable, TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from spark_jobs import resync, snapshot
from spark_jobs.runtime.job import Job
from tests.spark.databases import new_schema
from tests.spark.replicator import Replicator, by_table, now

Database = psycopg.Connection[object]
RULES = {
    "hard": TableRule("public.hard"),
    "soft": TableRule("public.soft", on_delete=OnDelete.SOFT),
    "kept": TableRule("public.kept", on_delete=OnDelete.IGNORE),
    "keyless": TableRule("public.keyless"),
    "heap": TableRule("public.heap", on_delete=OnDelete.IGNORE),
}


@pytest.fixture
def replicator(tmp_path: Path, database: Database, connection: ConnectionInfo) -> Replicator:
    """Five tables of 100 rows, copied, each of them resyncing; the last two have no key."""
    for name in RULES:
        key = "" if name in ("keyless", "heap") else "PRIMARY KEY"
        database.execute(f"CREATE TABLE {name} (id int {key}, note text)")
        database.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
        database.execute(f"INSERT INTO {name} SELECT n, 'old' FROM generate_series(1, 100) n")
    name = f"res{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR ALL TABLES")
    made = Replicator(tmp_path, name, connection, list(RULES.values()))
    by_table(made.run(made.step(StepKind.SNAPSHOT), snapshot.run))
    for task in made.tasks():
        start_resync(made, task.table)
    return made


def start_resync(replicator: Replicator, table: str, command: str = "") -> None:
    """Commits a fence, as pause_stream does."""
    (task,) = replicator.tasks(table)
    current = replicator.target.state(table, task.target)
    assert current.control is not None
    state = State(TableState.RESYNCING, since=now(), command=command)
    replicator.target.fence(task.target, current, current.control.fenced(state, attempt="pause"))


def run_resync(replicator: Replicator, *tables: str) -> dict[str, TableResult]:
    """While the commands that have started them are open."""
    tasks = [
        replace(task, resyncs=(task.control.state.command,) if task.control and task.control.state.command else ())
        for task in replicator.tasks(*tables)
    ]
    return by_table(replicator.run(replicator.step(StepKind.RESYNC, tasks), resync.run))


def rows(spark: SparkSession, replicator: Replicator, table: str) -> dict[int, tuple[object, ...]]:
    """id -> the other columns but the order."""
    frame = replicator.copied(spark, replicator.tasks(table)[0]).drop("_cdc_order")
    return {row[0]: tuple(row[1:]) for row in frame.collect()}


def test_a_pause_that_comes_while_a_copy_is_opened_stays_a_pause(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = replicator.tasks("public.hard")

    def run(job: Job) -> StepResult:
        copy = job.source.copy

        @contextlib.contextmanager
        def opened_late(task: TableTask, epoch: int, sealed: Position, partitions: int) -> Iterator[Copy]:
            current = replicator.target.state(task.table, task.target)
            assert current.control is not None
            paused = State(TableState.PAUSED, since=now())
            replicator.target.fence(task.target, current, current.control.fenced(paused, attempt="pause"))
            with copy(task, epoch, sealed, partitions) as made:
                yield made

        monkeypatch.setattr(job.source, "copy", opened_late)
        return resync.run(job)

    (result,) = replicator.run(replicator.step(StepKind.RESYNC, [task]), run).tables
    assert result.outcome is Outcome.FENCED
    assert replicator.tasks("public.hard")[0].state is TableState.PAUSED


def test_a_resync_replaces_changed_rows_and_applies_on_delete_to_missing_rows(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    before = {task.table: task.control for task in replicator.tasks()}
    for name in RULES:
        database.execute(f"DELETE FROM {name} WHERE id <= 10")
        database.execute(f"UPDATE {name} SET note = 'new' WHERE id = 11")
        database.execute(f"INSERT INTO {name} VALUES (101, 'new')")
    result = run_resync(replicator)
    assert {table.outcome for table in result.values()} == {Outcome.DONE}, result

    live = {**dict.fromkeys(range(12, 101), ("old",)), 11: ("new",), 101: ("new",)}
    gone = dict.fromkeys(range(1, 11), ("old",))
    assert rows(spark, replicator, "public.hard") == live
    assert rows(spark, replicator, "public.keyless") == live
    assert rows(spark, replicator, "public.heap") == live, "without a key, deleted rows and changed rows look alike"
    assert rows(spark, replicator, "public.kept") == live | gone
    assert rows(spark, replicator, "public.soft") == {
        **{key: (*values, False) for key, values in live.items()},
        **{key: (*values, True) for key, values in gone.items()},
    }
    assert result["public.hard"].detail == {"missing": 10, "of": 100}
    assert result["public.keyless"].detail == {"missing": 9, "of": 100}
    for task in replicator.tasks():
        old, control = before[task.table], task.control
        assert old is not None and control is not None
        assert control.state.name is TableState.RESYNCING, "resume_stream ends it"
        assert control.fence > old.fence and control.floor > old.floor


def test_where_another_read_may_return_other_rows_a_resync_compares_and_writes_those_of_one_read(
    spark: SparkSession, replicator: Replicator, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second read that lacks rows would delete them past the guard."""
    reads = list[str]()

    def emptied(client: PostgresClient, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        reads.append("in the driver, where only rows to be written are read")
        return iter(())

    database.execute("DELETE FROM hard WHERE id <= 10")
    monkeypatch.setattr(source, "read_split", emptied)
    monkeypatch.setattr(source.PostgresSource, "exact_snapshot", False)
    monkeypatch.setattr(copied, "SplitRead", lambda splits, **_: SplitRead(splits))
    result = run_resync(replicator, "public.hard")["public.hard"]
    assert (result.outcome, result.detail) == (Outcome.DONE, {"missing": 10, "of": 100})
    assert len(rows(spark, replicator, "public.hard")) == 90
    assert reads == []
    (task,) = replicator.tasks("public.hard")
    assert task.control is not None and task.control.high == 2


@pytest.mark.nightly
def test_a_mass_delete_waits_for_approval_which_counts_for_its_command(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    for name in ("hard", "soft", "keyless", "heap"):
        database.execute(f"DELETE FROM {name} WHERE id <= 21")
    tables = ("public.hard", "public.soft", "public.keyless", "public.heap")
    versions = {table: replicator.target.state(table, table[7:]).version for table in tables}
    blocked = run_resync(replicator, *tables)
    assert {table.outcome for table in blocked.values()} == {Outcome.BLOCKED}
    problem = blocked["public.hard"].problem
    assert problem is not None
    assert problem.what == "the resync of public.hard would delete 21 of 100 rows"
    name = replicator.definition.name
    assert problem.do.endswith(f"airflow cdc resync {name} --table public.hard --yes {name}")
    assert versions == {table: replicator.target.state(table, table[7:]).version for table in tables}

    decision = OperatorDecision(
        "1", DecisionKind.APPROVE_DELETES, replicator.definition.name, "public.hard", "anna", now(), "command-1"
    )
    replicator.log.store.write(decision_path("1"), json.dumps(to_plain(decision)).encode())
    assert run_resync(replicator, "public.hard")["public.hard"].outcome is Outcome.BLOCKED, "of no command"
    start_resync(replicator, "public.hard", command="command-1")
    result = run_resync(replicator, *tables)
    assert (result["public.hard"].outcome, result["public.soft"].outcome) == (Outcome.DONE, Outcome.BLOCKED)
    assert len(rows(spark, replicator, "public.hard")) == 79

    database.execute("DELETE FROM hard WHERE id <= 60")
    start_resync(replicator, "public.hard", command="command-2")
    assert run_resync(replicator, "public.hard")["public.hard"].outcome is Outcome.BLOCKED


def test_a_table_that_is_not_resyncing_is_left_alone(spark: SparkSession, replicator: Replicator) -> None:
    (task,) = replicator.tasks("public.hard")
    current = replicator.target.state(task.table, task.target)
    assert current.control is not None
    state = State(TableState.PAUSED, since=now())
    replicator.target.fence(task.target, current, current.control.fenced(state, attempt="pause"))
    assert run_resync(replicator, "public.hard")["public.hard"].outcome is Outcome.FENCED


def test_a_fence_raised_while_the_copy_runs_stops_its_commit(
    spark: SparkSession, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(name: str) -> None:
        if name == "copy.before_commit":
            start_resync(replicator, "public.hard")

    monkeypatch.setattr("spark_jobs.copies.copying.failpoint", overtaken)
    assert run_resync(replicator, "public.hard")["public.hard"].outcome is Outcome.FENCED


def test_a_fence_number_has_one_owner_whatever_the_window(replicator: Replicator) -> None:
    """A copy under the same fence with a later window would have the larger token: Delta alone would accept it."""
    (task,) = replicator.tasks("public.hard")
    assert task.control is not None
    pause = task.control.fenced(attempt="pause")
    assert replicator.log.claim_fence(pause)
    assert replicator.log.claim_fence(pause), "the same claim again is the same claim"
    assert not replicator.log.claim_fence(replace(pause, window=pause.window + 1, attempt="copy"))
    assert replicator.log.highest_fence("public.hard") == pause.fence


@pytest.mark.nightly
def test_a_column_added_meanwhile_is_in_the_copy(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    database.execute("ALTER TABLE soft ADD COLUMN more int DEFAULT 7")
    database.execute("DELETE FROM soft WHERE id = 1")
    assert run_resync(replicator, "public.soft")["public.soft"].outcome is Outcome.DONE
    assert rows(spark, replicator, "public.soft")[2] == ("old", 7, False)
    assert rows(spark, replicator, "public.soft")[1] == ("old", None, True)


def test_kept_rows_have_their_values_under_the_present_names_or_stop_the_copy(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    database.execute("DELETE FROM kept WHERE id = 1")
    database.execute("ALTER TABLE kept RENAME note TO remark; ALTER TABLE kept ADD note int")
    assert run_resync(replicator, "public.kept")["public.kept"].outcome is Outcome.DONE
    found = replicator.copied(spark, replicator.tasks("public.kept")[0]).where("id = 1").collect()
    assert [(row["remark"], row["note"]) for row in found] == [("old", None)]

    database.execute("ALTER TABLE kept ALTER remark TYPE int USING 7")
    start_resync(replicator, "public.kept")
    problem = run_resync(replicator, "public.kept")["public.kept"].problem
    assert problem is not None and (problem.code, problem.found) == ("CPY015", "remark")


def test_kept_rows_do_not_lose_the_values_of_a_column_that_somebody_renamed_in_the_target(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    """A table without rows that are kept is copied."""
    for name in ("kept", "soft"):
        table = f"delta.`{replicator.target.locate(replicator.tasks(f'public.{name}')[0].target)}`"
        spark.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT * EXCEPT (note), note AS remark FROM {table}")
    database.execute("DELETE FROM kept WHERE id = 1")
    problem = run_resync(replicator, "public.kept")["public.kept"].problem
    assert problem is not None and (problem.code, problem.found) == ("CPY024", "without note")
    assert run_resync(replicator, "public.soft")["public.soft"].outcome is Outcome.DONE


@pytest.mark.nightly
def test_kept_rows_have_no_values_of_former_columns_under_the_names_of_others(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    """The copy still has the former ones: one column is renamed to such a name, another one is new."""
    table = f"delta.`{replicator.target.locate(replicator.tasks('public.kept')[0].target)}`"
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (remark string, More int)")
    spark.sql(f"UPDATE {table} SET remark = 'former', more = 7")
    database.execute("DELETE FROM kept WHERE id = 1")
    database.execute("ALTER TABLE kept RENAME note TO remark; ALTER TABLE kept ADD more int")
    result = run_resync(replicator, "public.kept")["public.kept"]
    assert result.outcome is Outcome.DONE, result.problem
    found = replicator.copied(spark, replicator.tasks("public.kept")[0]).where("id = 1").collect()
    assert [(row["remark"], row["more"]) for row in found] == [("old", None)]


@pytest.mark.nightly
def test_kept_rows_have_the_texts_of_values_beside_the_columns_that_these_are_of(
    spark: SparkSession, tmp_path: Path, database: Database, connection: ConnectionInfo
) -> None:
    """One column is renamed, another one has gone, and a new column has its name."""
    database.execute("CREATE TABLE odd (id int PRIMARY KEY, day date, gone date)")
    database.execute("INSERT INTO odd VALUES (1, 'infinity', '-infinity')")
    database.execute("INSERT INTO odd SELECT n, '2026-01-01', '2026-01-02' FROM generate_series(2, 10) n")
    name = f"odd{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE odd")
    rule = TableRule("public.odd", on_delete=OnDelete.SOFT, on_unrepresentable=OnUnrepresentable.SET_NULL)
    made = Replicator(tmp_path, name, connection, [rule])
    by_table(made.run(made.step(StepKind.SNAPSHOT), snapshot.run))

    database.execute("DELETE FROM odd WHERE id = 1")
    database.execute("ALTER TABLE odd RENAME day TO days; ALTER TABLE odd DROP gone; ALTER TABLE odd ADD gone date")
    start_resync(made, "public.odd")
    (result,) = run_resync(made).values()
    assert result.outcome is Outcome.DONE, result.problem
    shown = made.copied(spark, made.tasks()[0]).select("id", "days", "_cdc_text_days", "gone", "_cdc_text_gone")
    assert sorted(map(tuple, shown.collect())) == [
        (1, None, "infinity", None, None),
        *((id, date(2026, 1, 1), None, None, None) for id in range(2, 11)),
    ]


@pytest.mark.nightly
def test_kept_rows_have_their_values_where_an_attempt_died_amid_renames(
    spark: SparkSession, tmp_path: Path, database: Database, connection: ConnectionInfo, mariadb: EmbeddedMariaDB
) -> None:
    """MariaDB has renamed the columns, and the control record has their former names."""
    database.execute("CREATE TABLE renamed (id int PRIMARY KEY, a text, b text)")
    database.execute("INSERT INTO renamed SELECT n, 'a', 'b' FROM generate_series(1, 10) n")
    name = f"renamed{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE renamed")
    rule = TableRule("public.renamed", on_delete=OnDelete.SOFT)
    with new_schema("mysql", mariadb, name) as warehouse:
        made = Replicator(tmp_path, name, connection, [rule], target=warehouse.target, warehouse=warehouse.connection)
        by_table(made.run(made.step(StepKind.SNAPSHOT), snapshot.run))
        database.execute("DELETE FROM renamed WHERE id = 1")
        database.execute("ALTER TABLE renamed RENAME b TO c; ALTER TABLE renamed RENAME a TO b")
        start_resync(made, "public.renamed")
        table = f"{warehouse.schema}.{made.tasks()[0].target}"
        warehouse.execute(f"ALTER TABLE {table} RENAME COLUMN b TO c, RENAME COLUMN a TO b")
        (result,) = run_resync(made).values()
        assert result.outcome is Outcome.DONE, result.problem
        with warehouse.session() as cursor:
            cursor.execute(f"SELECT b, c, _cdc_deleted FROM {table} WHERE id = 1")
            assert list(cursor.fetchall()) == [("a", "b", 1)]


@pytest.mark.parametrize("history", [History.SCD2, History.NONE], ids=str)
def test_a_table_whose_rows_are_kept_is_not_altered_before_it_is_replaced(
    tmp_path: Path, database: Database, connection: ConnectionInfo, monkeypatch: pytest.MonkeyPatch, history: History
) -> None:
    """The new copy needs no alteration, which a former column may prevent. An attempt that died between the two would
    leave the versions of a history that is given up under a schema without one."""
    database.execute("CREATE TABLE versioned (id int PRIMARY KEY, a text)")
    database.execute("INSERT INTO versioned SELECT n, 'a' FROM generate_series(1, 10) n")
    name = f"versioned{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE versioned")
    rule = TableRule("public.versioned", history=history)
    soft = TableRule("public.versioned", on_delete=OnDelete.SOFT)
    made = Replicator(tmp_path, name, connection, [soft if history is History.NONE else rule])
    by_table(made.run(made.step(StepKind.SNAPSHOT), snapshot.run))
    made.definition = replace(made.definition, tables=(soft,))
    database.execute("DELETE FROM versioned WHERE id = 1")
    start_resync(made, "public.versioned")
    altered: list[object] = []
    monkeypatch.setattr(resync, "follow_schema", lambda job, task, current, *_: altered.append(task) or current)
    (task,) = made.tasks()
    step = made.step(StepKind.RESYNC, [replace(task, resyncs=("approved",))])
    by_table(made.run(step, resync.run))
    assert altered == []


def test_a_history_follows_a_table_that_was_made_again_with_a_wider_column(
    spark: SparkSession,
    tmp_path: Path,
    database: Database,
    connection: ConnectionInfo,
    postgres: EmbeddedPostgres,
) -> None:
    """Its columns have other ids. The target compares the control record that was read with its own."""
    database.execute("CREATE TABLE wider (id int PRIMARY KEY, n int)")
    database.execute("INSERT INTO wider SELECT n, n FROM generate_series(1, 10) n")
    name = f"wider{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE wider")
    rule = TableRule("public.wider", history=History.SCD2)
    with new_schema("postgres", postgres, name) as warehouse:
        made = Replicator(tmp_path, name, connection, [rule], target=warehouse.target, warehouse=warehouse.connection)
        by_table(made.run(made.step(StepKind.SNAPSHOT), snapshot.run))
        database.execute("DROP TABLE wider; CREATE TABLE wider (id int PRIMARY KEY, n bigint)")
        database.execute("INSERT INTO wider SELECT n, n FROM generate_series(2, 10) n")
        database.execute(f"ALTER PUBLICATION {name} ADD TABLE wider")
        start_resync(made, "public.wider")
        (result,) = run_resync(made).values()
        assert result.outcome is Outcome.DONE, result.problem
        with warehouse.session() as cursor:
            cursor.execute(f"SELECT count(*) FROM {warehouse.schema}.{made.tasks()[0].target} WHERE _cdc_is_current")
            assert list(cursor.fetchall()) == [(9,)]


def test_a_history_does_not_continue_with_hidden_values_beside_clear_ones(
    tmp_path: Path, database: Database, connection: ConnectionInfo
) -> None:
    database.execute("CREATE TABLE mails (id int PRIMARY KEY, email text)")
    database.execute("INSERT INTO mails VALUES (1, 'ada@example.org')")
    name = f"mails{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE mails")
    rule = TableRule("public.mails", history=History.SCD2)
    made = Replicator(tmp_path, name, connection, [rule])
    by_table(made.run(made.step(StepKind.SNAPSHOT), snapshot.run))
    made.definition = replace(made.definition, tables=(replace(rule, columns=Columns(mask={"email": 4})),))
    start_resync(made, "public.mails")
    (result,) = run_resync(made).values()
    assert result.problem is not None and result.problem.code == "CPY025", result.problem
