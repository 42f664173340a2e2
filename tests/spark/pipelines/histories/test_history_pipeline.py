"""Histories of tables of PostgreSQL in a target of each kind: through runs, verify, schema changes, resyncs, and steps
that are killed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults import attempts, leaving
from tests.spark.databases import Database
from tests.spark.pipelines.pipeline import Pipeline
from tests.spark.targets_of_kinds import DELTA, FEATURES, ICEBERG, MYSQL, POSTGRES, rows_of, target_of_kind

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBERS = itertools.count(1)
CLIENT, ORDERS = "public.client", "public.orders"
HISTORY = f"{CLIENT}:history"
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"
Values = tuple[Any, ...]


@dataclass(kw_only=True)
class HistoryPipeline(Pipeline):
    """``database``: of the source. ``warehouse``: of the target, if it is a database."""

    server: EmbeddedPostgres
    database: str
    warehouse: Database | None

    @property
    def secrets(self) -> Secrets:
        server = self.server
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=self.database)
        return Secrets(info, *([self.warehouse.connection] if self.warehouse else []))

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def rows(self, target: str) -> list[dict[str, Any]]:
        return sorted(self.copy_of(target), key=lambda row: (row["id"] or 0, row["_cdc_sequence"]))

    def versions(self, *columns: str) -> list[Values]:
        """Of clients: values, and whether the version is current. Each one ends before the next one begins, and the
        current ones are the rows of the copy beside them."""
        rows = self.rows("client_history")
        current = {row["id"]: row["name"] for row in rows if row["_cdc_is_current"]}
        assert current == {row["id"]: row["name"] for row in self.copy_of("client")}
        for before, after in itertools.pairwise(rows):
            if before["id"] == after["id"] and not before["_cdc_is_current"]:
                assert before["_cdc_valid_from"] <= before["_cdc_valid_to"] <= after["_cdc_valid_from"]
        return [(row["id"], *(row[name] for name in columns or ("name",)), row["_cdc_is_current"]) for row in rows]

    def copy_of(self, target: str) -> list[dict[str, Any]]:
        return list(rows_of(self.replicator().targets.only, target, self.warehouse, self.spark))

    def changes(self) -> list[Values]:
        return [(row["_cdc_operation"], row["id"], row["amount"]) for row in self.rows("orders")]

    def row(self, table: str) -> TableRow:
        return self.replicator().state.tables(self.definition.name)[table]


@pytest.fixture(
    params=[DELTA, *(pytest.param(kind, marks=pytest.mark.nightly) for kind in (FEATURES, ICEBERG, POSTGRES, MYSQL))]
)
def shop(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[HistoryPipeline]:
    name = f"history{next(NUMBERS)}"
    with (
        psycopg.connect(postgres.dsn(), autocommit=True) as server,
        target_of_kind(request.param, f"{name}_copies", tmp_path, request) as (target, warehouse),
    ):
        server.execute(f"CREATE DATABASE {name}".encode())
        definition = Definition(
            name=name,
            source=Source("postgres", "source", options={"publication": "cdc"}),
            target=target,
            tables=(
                TableRule(CLIENT, history=History.SCD2, history_target="client_history"),
                TableRule(ORDERS, history=History.LOG),
            ),
            staging=Staging(f"{tmp_path}/staging"),
        )
        shop = HistoryPipeline(tmp_path, spark, definition, server=postgres, database=name, warehouse=warehouse)
        shop.sql(
            "CREATE TABLE client (id int PRIMARY KEY, name text, notes text)",
            "ALTER TABLE client ALTER notes SET STORAGE EXTERNAL",
            "INSERT INTO client VALUES (1, 'a', repeat('n', 9000)), (2, 'b', NULL), (3, 'c', NULL)",
            "CREATE TABLE orders (id int PRIMARY KEY, amount int)",
            "INSERT INTO orders VALUES (1, 10)",
            "CREATE PUBLICATION cdc FOR TABLE client, orders",
        )
        yield shop
        server.execute(SLOTS, [name])
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


COPIED = [(1, "a", True), (2, "b", True), (3, "c", True)]
CHANGED = [(1, "a", False), (1, "A", False), (1, "AA", True), (2, "b", False), (3, "c", True), (4, "d", True)]
LOGGED = [("read", 1, 10), ("update", 1, 11), ("delete", 1, None), ("insert", 2, 20)]


def change(shop: HistoryPipeline) -> None:
    """The notes of client 1 are stored out of line, and not sent with an update of the name."""
    shop.sql(
        "UPDATE client SET name = 'A' WHERE id = 1",
        "UPDATE client SET name = 'AA' WHERE id = 1",
        "DELETE FROM client WHERE id = 2",
        "INSERT INTO client VALUES (4, 'd', NULL)",
        "UPDATE orders SET amount = 11",
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (2, 20)",
    )


def test_versions_and_changes_follow_the_source_through_runs_and_new_columns(shop: HistoryPipeline) -> None:
    shop.run_successfully()
    assert shop.versions() == COPIED
    change(shop)
    shop.run_successfully()
    assert shop.versions() == CHANGED
    assert {row["notes"] for row in shop.rows("client_history") if row["id"] == 1} == {"n" * 9000}
    assert shop.changes() == LOGGED
    shop.sql("ALTER TABLE client ADD city text DEFAULT 'x'", "UPDATE client SET city = 'y' WHERE id = 3")
    shop.run_successfully()
    found = [*CHANGED[:4], (3, "c", False), (3, "c", True), (4, "d", True)]
    assert shop.versions() == found
    assert shop.versions("city")[4:] == [(3, "x", False), (3, "y", True), (4, "x", True)]
    assert (shop.row(HISTORY).state, shop.row(HISTORY).rows) == (TableState.REPLICATING, len(found))
    assert (shop.row(CLIENT).state, shop.row(CLIENT).rows) == (TableState.REPLICATING, 3)
    assert shop.row(ORDERS).rows == len(LOGGED)


@pytest.mark.nightly
def test_a_resync_keeps_versions_and_verify_compares_the_current_ones(shop: HistoryPipeline) -> None:
    shop.run_successfully()
    change(shop)
    shop.run_successfully()
    shop.record_command(CommandKind.VERIFY, CLIENT, HISTORY)
    verified = shop.results(shop.run_successfully(), "verify")
    for name in (CLIENT, HISTORY):
        assert verified[name].detail["identical"] and verified[name].detail["target_rows"] == 3
    shop.record_command(CommandKind.RESYNC, CLIENT, HISTORY, ORDERS, approve_deletes=True)
    shop.run_until_idle()
    assert shop.versions() == CHANGED and shop.changes() == LOGGED


@pytest.mark.nightly
def test_a_resync_writes_what_differs(shop: HistoryPipeline) -> None:
    """The changes between the last window and the copy are not in the log: the table was not in the publication."""
    shop.run_successfully()
    shop.sql("ALTER PUBLICATION cdc DROP TABLE client, orders")
    change(shop)
    shop.sql("ALTER PUBLICATION cdc ADD TABLE client, orders")
    shop.run()
    shop.record_command(CommandKind.RESYNC, CLIENT, HISTORY, ORDERS, approve_deletes=True)
    shop.run_until_idle()
    assert shop.versions() == [
        *((1, "a", False), (1, "AA", True), (2, "b", False), (3, "c", True), (4, "d", True)),
    ]
    assert shop.changes() == [("read", 1, 10), ("delete", 1, 10), ("read", 2, 20)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("task", "point"),
    [
        ("snapshot", "copy.before_commit"),
        ("snapshot", "copy.after_commit"),
        ("stage", "stage.after_rows"),
        ("merge", "merge.before_commit"),
        ("merge", "merge.after_commit"),
        ("reconcile.resync", "copy.anchored"),
        ("reconcile.resync", "copy.before_commit"),
        ("reconcile.resync", "copy.after_commit"),
    ],
)
def test_a_step_that_is_killed_has_the_same_result(
    shop: HistoryPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, point: str
) -> None:
    token = tmp_path / "armed"
    token.touch()
    tasks: list[str] = [""]

    def killed() -> dict[str, str] | None:
        return {ARMED: f"{point}=kill9", TOKEN: str(token)} if tasks[-1] == task and token.exists() else None

    monkeypatch.setattr(attempts, "armed", SimpleNamespace(get=killed))
    shop.run_successfully(between=tasks.append)
    change(shop)
    shop.run_successfully(between=tasks.append)
    shop.record_command(CommandKind.RESYNC, CLIENT, HISTORY, ORDERS, approve_deletes=True)
    shop.run_successfully(between=tasks.append)
    shop.run_until_idle()
    assert not token.exists(), "it was killed"
    assert shop.versions() == CHANGED and shop.changes() == LOGGED


@pytest.mark.nightly
def test_a_history_that_is_added_later_begins_with_a_copy_while_the_other_copies_continue(
    shop: HistoryPipeline,
) -> None:
    rules = shop.definition.tables
    shop.definition = replace(shop.definition, tables=(TableRule(CLIENT), TableRule(ORDERS)))
    shop.run_successfully()
    shop.definition = replace(shop.definition, tables=(rules[0], TableRule(ORDERS)))
    change(shop)
    shop.run_until_idle()
    assert shop.versions() == [(1, "AA", True), (3, "c", True), (4, "d", True)]
    shop.sql("DELETE FROM client WHERE id = 3")
    shop.run_successfully()
    assert shop.versions() == [(1, "AA", True), (3, "c", False), (4, "d", True)]


@pytest.mark.nightly
def test_a_paused_history_catches_up_from_the_log_and_delays_no_other_copy(shop: HistoryPipeline) -> None:
    shop.run_successfully()
    shop.record_command(CommandKind.PAUSE, HISTORY)
    change(shop)
    shop.run()
    assert {row["id"] for row in shop.copy_of("client")} == {1, 3, 4} and len(shop.rows("client_history")) == 3
    shop.record_command(CommandKind.RESUME, HISTORY)
    shop.run_until_idle()
    assert shop.versions() == CHANGED


@pytest.mark.nightly
def test_histories_continue_under_another_name_and_leave_with_their_replicator(shop: HistoryPipeline) -> None:
    shop.run_successfully()
    renamed = f"{shop.definition.name}_renamed"
    assert leaving.run(shop, leaving.RENAME, {"name": renamed}) == 0  # type: ignore[arg-type]
    shop.definition = replace(shop.definition, name=renamed)
    change(shop)
    shop.run_successfully()
    assert shop.versions() == CHANGED and shop.changes() == LOGGED
    assert leaving.run(shop, leaving.DELETE, {}) == 0  # type: ignore[arg-type]
    tables = shop.replicator().targets.only
    left = [tables.state(CLIENT, target).exists for target in ("client", "client_history", "orders")]
    assert left == [False] * 3


@pytest.mark.nightly
def test_a_history_may_be_begun_and_given_up_by_a_resync(shop: HistoryPipeline) -> None:
    shop.run_successfully()
    change(shop)
    shop.run_successfully()
    shop.definition = replace(shop.definition, tables=(TableRule(CLIENT), TableRule(ORDERS)))
    shop.run()
    assert shop.row(ORDERS).state is TableState.BLOCKED
    shop.record_command(CommandKind.RESYNC, ORDERS)
    shop.run()
    assert "would delete 4 of 4 rows" in shop.row(ORDERS).reason
    shop.record_command(CommandKind.RESYNC, ORDERS, approve_deletes=True)
    shop.run_until_idle()
    assert [row["id"] for row in shop.copy_of("orders")] == [2]
    assert len(shop.rows("client_history")) == len(CHANGED), "it stays"
