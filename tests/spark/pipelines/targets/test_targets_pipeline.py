"""Tables of PostgreSQL in two targets of one replicator, a Delta lake and a PostgreSQL schema: through runs, outages,
commands, killed steps, and targets that come and go."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.footprint import find_footprint
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets, TargetSecrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.verification import OnDifference, Verify
from airflow_cdc_provider.core.table.copies import copy_name
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.delta_tables import read
from tests.faults import attempts, leaving
from tests.faults.dag_run import DagRun
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBERS = itertools.count(1)
CLIENT, ORDERS = "public.client", "public.orders"
TABLES = {CLIENT: "client", ORDERS: "orders"}
WAREHOUSE = copy_name(CLIENT, "wh")
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"
CONFIRMED = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = %s AND NOT temporary"
NO_CONNECTION = TargetSecrets(problems=(Problem("CON001", "Airflow has no connection wh"),))
Rows = dict[int, str]


@dataclass(kw_only=True)
class TargetsPipeline(Pipeline):
    """``down``: the database of the warehouse is not there. ``refused``: it rejects the password. ``missing``: Airflow
    has no connection to it."""

    server: EmbeddedPostgres
    database: str
    warehouse: Database
    down: bool = False
    refused: bool = False
    missing: bool = False

    @property
    def secrets(self) -> Secrets:
        server, warehouse = self.server, self.warehouse.connection
        warehouse = replace(warehouse, port=free_ports(1)[0]) if self.down else warehouse
        warehouse = replace(warehouse, password="wrong") if self.refused else warehouse
        return Secrets(
            ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=self.database),
            targets={"wh": NO_CONNECTION if self.missing else TargetSecrets(warehouse), "default": TargetSecrets()},
        )

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def truth(self, table: str) -> Rows:
        with psycopg.connect(self.server.dsn(self.database)) as connection:
            return dict(connection.execute(f"SELECT id, v FROM {table}".encode()).fetchall())

    def lake_rows(self, table: str) -> Rows:
        location = self.replicator().targets.named("default").locate(TABLES[table])
        rows = read(DeltaTable(location), "id", "v").to_pylist()
        assert len({row["id"] for row in rows}) == len(rows), "no key twice"
        return {row["id"]: row["v"] for row in rows}

    def warehouse_rows(self, table: str) -> Rows:
        return dict(self.warehouse.execute(f"SELECT id, v FROM {self.warehouse.schema}.{TABLES[table]}"))

    def assert_lake_exact(self) -> None:
        assert {table: self.lake_rows(table) for table in TABLES} == {table: self.truth(table) for table in TABLES}

    def assert_exact(self) -> None:
        self.assert_lake_exact()
        assert {table: self.warehouse_rows(table) for table in TABLES} == {table: self.truth(table) for table in TABLES}

    def row(self, copy: str) -> TableRow:
        return self.replicator().state.tables(self.definition.name)[copy]

    def forget_comparison(self, copy: str, since: timedelta) -> None:
        """Its last comparison, and its copy, become that old."""
        at = (datetime.now(UTC) - since).isoformat(timespec="milliseconds")
        with sqlite3.connect(self.folder / "state.db") as index:
            old = "UPDATE cdc_table SET body = json_set(body, '$.verified', NULL, '$.since', ?) WHERE \"table\" = ?"
            index.execute(old, (at, copy))

    def states(self) -> dict[str, TableState]:
        return {copy: row.state for copy, row in self.replicator().state.tables(self.definition.name).items()}

    def confirmed(self) -> str:
        with psycopg.connect(self.server.dsn()) as connection:
            return str(connection.execute(CONFIRMED, [self.database]).fetchone())

    def with_targets(self, *targets: Target) -> None:
        self.definition = replace(self.definition, target=None, targets=targets)


@pytest.fixture
def shop(postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path) -> Iterator[TargetsPipeline]:
    name = f"targets{next(NUMBERS)}"
    with (
        psycopg.connect(postgres.dsn(), autocommit=True) as server,
        new_schema("postgres", postgres, f"{name}_wh") as warehouse,
    ):
        server.execute(f"CREATE DATABASE {name}".encode())
        definition = Definition(
            name=name,
            source=Source("postgres", "source", options={"publication": "cdc"}),
            targets=(replace(warehouse.target, name="wh"), Target("delta", f"{tmp_path}/lake")),
            tables=(TableRule(CLIENT, "client"), TableRule(ORDERS, "orders")),
            staging=Staging(f"{tmp_path}/staging"),
        )
        shop = TargetsPipeline(tmp_path, spark, definition, server=postgres, database=name, warehouse=warehouse)
        shop.sql(
            "CREATE TABLE client (id int PRIMARY KEY, v text)",
            "INSERT INTO client VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "CREATE TABLE orders (id int PRIMARY KEY, v text)",
            "INSERT INTO orders VALUES (1, 'x')",
            "CREATE PUBLICATION cdc FOR TABLE client, orders",
        )
        yield shop
        server.execute(SLOTS, [name])
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def change(shop: TargetsPipeline, number: int = 4) -> None:
    shop.sql(
        "UPDATE client SET v = v || 'u' WHERE id = 1",
        "DELETE FROM client WHERE id = 2",
        f"INSERT INTO client VALUES ({number}, 'd')",
        f"INSERT INTO orders VALUES ({number}, 'y')",
    )


def failed_only(dag_run: DagRun, *copies: str) -> bool:
    """Whether the run reports these copies, and no step failed as a whole."""
    named = [copy for copy in copies if any(copy in problem for problem in dag_run.problems)]
    return len(named) == len(copies) == len(dag_run.problems) and "failed" not in dag_run.states.values()


def test_both_targets_have_the_same_changes_and_the_trouble_of_one_does_not_stop_the_other(
    shop: TargetsPipeline,
) -> None:
    shop.run_successfully()
    shop.assert_exact()
    change(shop)
    shop.down = True
    confirmed = shop.confirmed()
    assert failed_only(shop.run(), WAREHOUSE, copy_name(ORDERS, "wh"))
    shop.assert_lake_exact()
    assert (shop.row(WAREHOUSE).state, shop.row(CLIENT).state) == (TableState.FAILING, TableState.REPLICATING)
    assert shop.confirmed() == confirmed, "the source keeps what the warehouse needs"
    shop.down = False
    change(shop, 5)
    shop.run_successfully()
    shop.assert_exact()
    assert shop.confirmed() != confirmed
    windows = {copy: row.passed for copy, row in shop.replicator().state.tables(shop.definition.name).items()}
    assert len(set(windows.values())) == 1 and len(windows) == 4


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["stage", "merge", "close_window"])
def test_a_target_that_stops_within_a_run_fails_its_copies_alone(shop: TargetsPipeline, task: str) -> None:
    shop.run_successfully()
    change(shop)

    def stop(next_task: str) -> None:
        shop.down = shop.down or next_task == task

    dag_run = shop.run(between=stop)
    assert "failed" not in dag_run.states.values(), dag_run.problems
    shop.assert_lake_exact()
    assert shop.row(CLIENT).state is TableState.REPLICATING and shop.row(WAREHOUSE).state is TableState.FAILING
    shop.down = False
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
@pytest.mark.parametrize("trouble", ["refused", "missing"])
def test_a_login_that_is_refused_or_missing_fails_the_copies_of_that_target_alone(
    shop: TargetsPipeline, trouble: str
) -> None:
    shop.run_successfully()
    change(shop)
    setattr(shop, trouble, True)
    dag_run = shop.run()
    assert failed_only(dag_run, WAREHOUSE, copy_name(ORDERS, "wh"))
    shop.assert_lake_exact()
    setattr(shop, trouble, False)
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
def test_a_target_that_is_added_later_begins_with_copies_while_the_others_continue(shop: TargetsPipeline) -> None:
    warehouse, lake = shop.definition.targets
    shop.definition = replace(shop.definition, targets=(), target=lake)
    shop.run_successfully()
    version = shop.replicator().targets.only.state(CLIENT, "client").version
    shop.with_targets(lake, warehouse)
    change(shop)
    dag_run = shop.run_successfully()
    assert set(shop.results(dag_run, "snapshot")) == {WAREHOUSE, copy_name(ORDERS, "wh")}
    after = shop.replicator().targets.named("default").state(CLIENT, "client")
    assert after.version == (version or 0) + 1, "the copy in the lake has one more merge, and no other copy"
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
def test_the_copies_of_a_target_that_is_removed_are_reported_and_kept(shop: TargetsPipeline) -> None:
    warehouse, lake = shop.definition.targets
    shop.run_successfully()
    before = shop.warehouse_rows(CLIENT)
    shop.with_targets(lake)
    change(shop)
    shop.run_successfully()
    shop.assert_lake_exact()
    assert shop.warehouse_rows(CLIENT) == before
    assert find_footprint(shop.replicator()).left == (WAREHOUSE, copy_name(ORDERS, "wh"))
    shop.with_targets(lake, warehouse)
    change(shop, 5)
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
def test_one_copy_is_paused_and_copied_again_by_its_name(shop: TargetsPipeline) -> None:
    shop.run_successfully()
    shop.record_command(CommandKind.PAUSE, WAREHOUSE)
    change(shop)
    before = shop.warehouse_rows(CLIENT)
    shop.run_successfully()
    shop.assert_lake_exact()
    assert shop.warehouse_rows(CLIENT) == before and shop.warehouse_rows(ORDERS) == shop.truth(ORDERS)
    shop.record_command(CommandKind.RESUME, WAREHOUSE)
    shop.run_until_idle()
    shop.assert_exact()
    shop.warehouse.execute(f"DELETE FROM {shop.warehouse.schema}.client")
    shop.record_command(CommandKind.VERIFY, CLIENT, WAREHOUSE)
    found = shop.results(shop.run(), "verify")
    assert (found[CLIENT].detail["identical"], found[WAREHOUSE].detail["identical"]) == (True, False)
    shop.record_command(CommandKind.RESYNC, WAREHOUSE)
    dag_run = shop.run_successfully()
    assert set(shop.results(dag_run, "reconcile.resync")) == {WAREHOUSE}
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("task", "point"),
    [
        ("snapshot", "copy.after_commit"),
        ("stage", "stage.after_batch"),
        ("merge", "merge.before_commit"),
        ("merge", "merge.after_commit"),
    ],
)
def test_a_step_that_is_killed_between_the_targets_has_the_same_result(
    shop: TargetsPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, point: str
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
    assert not token.exists(), "it was killed"
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
def test_the_comparison_of_each_copy_is_due_recorded_and_repaired_on_its_own(shop: TargetsPipeline) -> None:
    shop.run_successfully()
    shop.run_until_idle()
    copies = {*TABLES, WAREHOUSE, copy_name(ORDERS, "wh")}
    shop.warehouse.execute(f"DELETE FROM {shop.warehouse.schema}.client WHERE id = 1")
    shop.definition = replace(shop.definition, verify=Verify(timedelta(microseconds=1)))
    dag_run = shop.run()
    assert failed_only(dag_run, WAREHOUSE) and "VER006" in dag_run.problems[0]
    assert {copy: one.detail["identical"] for copy, one in shop.results(dag_run, "verify").items()} == {
        copy: copy != WAREHOUSE for copy in copies
    }
    first = {copy: shop.row(copy).verified for copy in copies}
    assert {copy for copy, one in first.items() if one and not one.identical} == {WAREHOUSE}
    shop.down = True
    assert failed_only(shop.run(), WAREHOUSE, copy_name(ORDERS, "wh"))
    second = {copy: shop.row(copy).verified for copy in copies}
    assert {copy for copy in copies if second[copy] != first[copy]} == {*TABLES}, "those of the lake are compared again"
    shop.down = False
    shop.definition = replace(shop.definition, verify=Verify(timedelta(days=1), OnDifference.ON))
    shop.run_until_idle()
    shop.forget_comparison(WAREHOUSE, since=timedelta(days=2))
    found = shop.results(shop.run_successfully(), "verify")
    repaired = {copy: one.detail["repaired"] for copy, one in found.items() if "identical" in one.detail}
    assert repaired == {WAREHOUSE: 1}, "the others catch up without a comparison"
    assert {copy for copy in copies if shop.row(copy).verified != second[copy]} == {WAREHOUSE}
    shop.assert_exact()


@pytest.mark.nightly
def test_a_cut_is_published_in_each_target(shop: TargetsPipeline) -> None:
    shop.run_successfully()
    change(shop)
    shop.down = True
    shop.run()
    first = shop.warehouse.execute(f"SELECT DISTINCT cut_window FROM {shop.warehouse.schema}._cdc_cut")
    shop.down = False
    change(shop, 5)
    shop.run_until_idle()
    assert shop.warehouse.execute(f"SELECT DISTINCT cut_window FROM {shop.warehouse.schema}._cdc_cut") != first


@pytest.mark.nightly
def test_the_copies_in_all_targets_continue_under_another_name_and_leave_with_their_replicator(
    shop: TargetsPipeline,
) -> None:
    shop.run_successfully()
    renamed = f"{shop.definition.name}_renamed"
    assert leaving.run(shop, leaving.RENAME, {"name": renamed}) == 0  # type: ignore[arg-type]
    shop.definition = replace(shop.definition, name=renamed)
    change(shop)
    shop.run_successfully()
    shop.assert_exact()
    locations = [shop.replicator().targets.named("default").locate(name) for name in TABLES.values()]
    assert leaving.run(shop, leaving.DELETE, {}) == 0  # type: ignore[arg-type]
    assert not any(map(DeltaTable.is_deltatable, locations))
    assert not {*TABLES.values()} & {*shop.warehouse.tables()}


FULL = (
    "CREATE FUNCTION {schema}.is_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$",
    "CREATE TRIGGER is_full AFTER INSERT OR UPDATE ON {schema}.client FOR EACH ROW EXECUTE FUNCTION {schema}.is_full()",
)


@pytest.mark.nightly
def test_a_full_warehouse_does_not_stop_the_lake(shop: TargetsPipeline) -> None:
    shop.run_successfully()
    shop.warehouse.execute(*(statement.format(schema=shop.warehouse.schema) for statement in FULL))
    change(shop)
    dag_run = shop.run()
    assert failed_only(dag_run, WAREHOUSE) and "No space left" in dag_run.problems[0]
    shop.assert_lake_exact()
    assert shop.warehouse_rows(ORDERS) == shop.truth(ORDERS), "one table's failure stops no other"
    shop.warehouse.execute(f"DROP TRIGGER is_full ON {shop.warehouse.schema}.client")
    shop.run_until_idle()
    shop.assert_exact()


@pytest.mark.nightly
def test_a_full_lake_does_not_stop_the_warehouse(
    shop: TargetsPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run_successfully()
    token = tmp_path / "armed"
    token.touch()
    tasks: list[str] = [""]

    def full() -> dict[str, str] | None:
        return {ARMED: "target.write=enospc", TOKEN: str(token)} if tasks[-1] == "merge" and token.exists() else None

    monkeypatch.setattr(attempts, "armed", SimpleNamespace(get=full))
    change(shop)
    dag_run = shop.run(between=tasks.append)
    assert not token.exists(), "the disk was full"
    assert "failed" not in dag_run.states.values() and any("No space left" in text for text in dag_run.problems)
    assert {table: shop.warehouse_rows(table) for table in TABLES} == {table: shop.truth(table) for table in TABLES}
    shop.run_until_idle()
    shop.assert_exact()
