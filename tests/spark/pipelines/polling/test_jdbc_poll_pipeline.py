"""PostgreSQL tables that are polled, end to end: first copy, windows, merges, audits, resyncs."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Columns, OnDelete, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.faults.worker import request
from tests.model.seeds import seed
from tests.spark.pipelines.hidden_columns import HiddenColumns, hashed
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Database = psycopg.Connection[object]
SEED = seed()
OPTIONS: dict[str, Any] = {
    "driver": "postgresql+psycopg", "timestamp_column": "updated_at", "commit_latency": 1.0, "timestamp_latency": 30.0,
}  # fmt: skip
TABLES = ("public.a", "public.b")


@pytest.fixture
def shop(tmp_path: Path, database: Database, connection: ConnectionInfo, spark: SparkSession) -> PollingPipeline:
    """Two tables of 30 rows, copied. Their triggers set the timestamp of every change."""
    database.execute(
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.updated_at := clock_timestamp(); RETURN NEW; END $$"
    )
    for name in ("a", "b"):
        database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, price numeric(10,2), note text, updated_at timestamptz NOT NULL)"
        )
        database.execute(f"CREATE INDEX ON {name} (updated_at)")
        database.execute(f"CREATE TRIGGER t BEFORE INSERT OR UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION stamp()")
        database.execute(f"INSERT INTO {name} SELECT n, n, 'old' FROM generate_series(1, 30) n")

    def truth(table: str) -> Rows:
        rows = database.execute(f"SELECT id, price, note, updated_at FROM {table}".encode()).fetchall()
        names = ("id", "price", "note", "updated_at")
        return {row[0]: dict(zip(names, row, strict=True)) for row in rows}  # type: ignore[index]

    rules = (TableRule("public.a"), TableRule("public.b", on_delete=OnDelete.HARD))
    made = PollingPipeline(tmp_path, spark, definition(tmp_path, "jdbc_poll", OPTIONS, rules), connection, "id", truth)
    made.run_successfully()
    assert made.differences() == []
    return made


def old_enough() -> None:
    time.sleep(1.2)


def write(database: Database, chance: random.Random, times: int) -> None:
    for _ in range(times):
        table, one = chance.choice(("a", "b")), chance.randint(1, 60)
        database.execute(
            f"INSERT INTO {table} VALUES ({one}, {chance.randint(0, 99)}, '{chance.random()}') "
            f"ON CONFLICT (id) DO UPDATE SET price = excluded.price, note = excluded.note"
        )


def test_copies_follow_every_write_and_a_run_without_changes_starts_no_job(
    shop: PollingPipeline, database: Database
) -> None:
    chance = random.Random(SEED)
    for _ in range(3):
        write(database, chance, 25)
        old_enough()
        shop.run_successfully()
        assert shop.differences() == [], f"CDC_SEED={SEED}"
    shop.with_source(options={"timestamp_latency": 1.0})
    old_enough()
    shop.run_until_idle()
    database.execute("UPDATE a SET note = 'new' WHERE id = 1")
    old_enough()
    assert shop.results(shop.run_successfully(), "merge").keys() == {"public.a"}, "only changed rows are read"
    assert shop.differences() == []


def test_the_audit_removes_deleted_rows_and_old_keys_and_nothing_else(
    shop: PollingPipeline, database: Database
) -> None:
    database.execute("DELETE FROM a WHERE id <= 3")
    database.execute("UPDATE a SET id = 100 WHERE id = 4")
    database.execute("INSERT INTO a VALUES (50, 1, 'new')")
    old_enough()
    shop.run_successfully()
    assert shop.rows("public.a").keys() == {*range(1, 31), 50, 100}, "a poll returns no deletes"
    shop.with_source(options={"key_audit": 1.0})
    before = shop.control("public.b")
    dag_run = shop.run_successfully()
    assert [task for task in dag_run.states if task.startswith("reconcile")] == [
        "reconcile.pause_stream", "reconcile.resync", "reconcile.replay", "reconcile.resume_stream",
    ]  # fmt: skip
    result = shop.results(dag_run, "reconcile.resync")["public.a"]
    assert result.counts["deleted"] == 4 and result.detail["missing"] == 4 and result.detail["of"] == 32
    assert shop.differences() == []
    assert shop.control("public.a").state.name is TableState.REPLICATING
    assert shop.control("public.b").floor == before.floor, "nothing was copied again"
    shop.with_source(options={"key_audit": 86400.0})
    write(database, random.Random(SEED), 20)
    old_enough()
    shop.run_successfully()
    assert shop.differences() == [], f"CDC_SEED={SEED}"


@pytest.mark.nightly
def test_rows_that_are_missing_are_flagged_where_deletes_are_soft(shop: PollingPipeline, database: Database) -> None:
    rules = [replace(rule, on_delete=OnDelete.SOFT) for rule in shop.definition.tables]
    shop.definition = replace(shop.definition, tables=tuple(rules))
    request(shop.replicator(), CommandKind.RESYNC, {"tables": list(TABLES), "key": "soft"})
    shop.run_successfully()
    database.execute("DELETE FROM a WHERE id = 7")
    shop.with_source(options={"key_audit": 1.0})
    old_enough()
    shop.run_successfully()
    flagged = {key: row for key, row in shop.rows("public.a").items() if row["_cdc_deleted"]}
    assert flagged.keys() == {7} and flagged[7]["note"] == "old"
    database.execute("INSERT INTO a VALUES (7, 1, 'again')")
    shop.with_source(options={"key_audit": 86400.0})
    old_enough()
    shop.run_successfully()
    assert not shop.rows("public.a")[7]["_cdc_deleted"] and shop.rows("public.a")[7]["note"] == "again"


@pytest.mark.nightly
def test_an_audit_with_many_deletes_waits_for_approval(shop: PollingPipeline, database: Database) -> None:
    database.execute("DELETE FROM a WHERE id <= 20")
    shop.with_source(options={"key_audit": 1.0})
    old_enough()
    dag_run = shop.run()
    assert any("CPY004" in line and "key audit" in line for line in dag_run.problems), dag_run.problems
    assert len(shop.rows("public.a")) == 30
    assert shop.control("public.b").state.name is TableState.REPLICATING
    yes = {"tables": ["public.a"], "arguments": {"approve_deletes": True}, "key": "yes"}
    request(shop.replicator(), CommandKind.RESYNC, yes)
    shop.with_source(options={"key_audit": 86400.0})
    shop.run_successfully()
    assert shop.differences() == []


@pytest.mark.nightly
def test_a_table_that_is_added_later_is_copied_completely(shop: PollingPipeline, database: Database) -> None:
    database.execute("CREATE TABLE c (LIKE b INCLUDING ALL)")
    database.execute("INSERT INTO c SELECT * FROM b")
    database.execute("UPDATE a SET note = 'at the same time'")
    shop.definition = replace(shop.definition, tables=(*shop.definition.tables, TableRule("public.c")))
    old_enough()
    shop.run_successfully()
    database.execute("UPDATE c SET note = 'later', updated_at = clock_timestamp() WHERE id = 5")
    old_enough()
    shop.run_successfully()
    assert shop.differences() == []


@pytest.mark.nightly
def test_a_resync_copies_the_table_again_and_later_changes_apply_to_the_copy(
    shop: PollingPipeline, database: Database
) -> None:
    location = shop.replicator().targets.only.locate(shop.target("public.a"))
    shop.spark.sql(f"UPDATE delta.`{location}` SET note = 'somebody else' WHERE id = 9")
    request(shop.replicator(), CommandKind.RESYNC, {"tables": ["public.a"], "key": "again"})
    write(database, random.Random(SEED), 10)
    old_enough()
    shop.run_successfully()
    old_enough()
    shop.run_successfully()
    assert shop.differences() == [], f"CDC_SEED={SEED}"


@pytest.mark.nightly
def test_verify_reads_up_to_now_and_reports_that_it_is_not_exact(shop: PollingPipeline, database: Database) -> None:
    write(database, random.Random(SEED), 10)
    old_enough()
    request(shop.replicator(), CommandKind.VERIFY, {"tables": list(TABLES), "key": "v"})
    results = shop.results(shop.run_successfully(), "verify")
    assert all(one.detail["identical"] and one.detail["inexact"] for one in results.values()), results


@pytest.mark.nightly
def test_rows_that_differ_are_reported_and_cured_by_a_resync_alone(shop: PollingPipeline) -> None:
    """A difference may be a change on its way, because the position of the rows is unknown. A row of the source is read
    again by the next polls, which cures it; one that only the copy has is not."""
    location = shop.replicator().targets.only.locate(shop.target("public.a"))
    shop.spark.sql(f"INSERT INTO delta.`{location}` (id, note) VALUES (99, 'extra')")
    old_enough()
    shop.record_command(CommandKind.VERIFY, *TABLES, repair=True)
    found = {name: one.detail for name, one in shop.results(shop.run_successfully(), "verify").items()}
    assert {name: one["differences"] for name, one in found.items()} == {"public.a": ["99"], "public.b": []}
    assert "repaired" not in found["public.a"] and shop.rows("public.a")[99]["note"] == "extra"
    assert found["public.a"]["not_repaired"].endswith("do: airflow cdc resync polled --table public.a")
    shop.record_command(CommandKind.RESYNC, "public.a", approve_deletes=True)
    shop.run_successfully()
    old_enough()
    shop.run_successfully()
    assert shop.differences() == []


@pytest.mark.nightly
def test_hidden_columns_follow_every_write(
    shop: PollingPipeline, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = HiddenColumns(
        shop,
        shop.truth,
        lambda row: {"no": hashed(row["id"]), "price": row["price"], "note": hashed(row["note"])},
        key="no",
        clear='"note":"0.',
    )
    hidden.hide(Columns(hash=("id", "note"), rename={"id": "no"}, cast={"price": "decimal(12,4)"}), monkeypatch)
    write(database, random.Random(SEED), 25)
    old_enough()
    shop.run_successfully()
    assert (hidden.differences(), hidden.clear_windows()) == ([], []), f"CDC_SEED={SEED}"
    hidden.verify()
    database.execute("DELETE FROM a WHERE id IN (3, 4)")
    shop.with_source(options={"key_audit": 1.0, "page_rows": 100})
    old_enough()
    result = shop.results(shop.run_successfully(), "reconcile.resync")["public.a"]
    assert result.counts["deleted"] == 2 and hidden.differences() == [], "an audit compares hashed keys"
