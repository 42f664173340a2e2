"""Tables of MariaDB that start without rows, with some, or with those of an existing table, and slices of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Definition, TableRule, Target
from airflow_cdc_provider.core.spec.slices import SliceLength, Slices
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.mariadb import series
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.polling.pipeline import definition
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.pipelines.schema_changes.test_mariadb_statements import MariadbPipeline
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

M = SnapshotMode
DATABASE, TARGET = "statements", "extents_target"
MAKE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a int, d date, v varchar(20))",
    "INSERT INTO {t} SELECT seq, seq * 10, date '2026-01-01' + interval seq day, 'v' FROM " + series(6),
)
CHANGES = (
    "UPDATE {t} SET a = a + 1 WHERE id = 1",
    "DELETE FROM {t} WHERE id IN (2, 5)",
    "INSERT INTO {t} VALUES (7, 70, '2026-02-01', 'new')",
)
EXISTING = "SELECT 1 AS id, 10 AS a, DATE'2026-01-02' AS d, 'old' AS v UNION ALL SELECT 99, 990, NULL, 'v'"
RECENT = (Condition("d", Comparison.GREATER, "2026-01-04"), Condition("v", Comparison.NOT_EQUAL, "x"))
SNAPSHOTS = {
    "whole": Snapshot(),
    "empty": Snapshot(M.SCHEMA_ONLY),
    "recent": Snapshot(where=RECENT),
    "needed": Snapshot(M.WHEN_NEEDED),
    "loaded": Snapshot(M.NEVER),
    "sliced": Snapshot(M.SCHEMA_ONLY, slices=Slices("d", SliceLength.DAY)),
}


@dataclass(kw_only=True)
class MariadbExtents(MariadbPipeline):
    database: Database | None = None

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.info, self.database.connection if self.database else ConnectionInfo())

    def at_source(self, *statements: str, table: str) -> None:
        with self.server.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement.replace("{t}", table))

    def ids(self, table: str) -> list[int]:
        return sorted(row["id"] for row in self._copy(table))

    def states(self) -> dict[str, TableState]:
        return {table: self.row(table).state for table in SNAPSHOTS}

    def _copy(self, table: str) -> Iterator[dict[str, Any]]:
        if self.database is None:
            yield from super()._copy(table)
            return
        with self.database.session() as cursor:
            cursor.execute(f"SELECT * FROM {self.database.schema}.{self.target(f'{DATABASE}.{table}')}")
            names = [column[0] for column in cursor.description]
            yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())


@pytest.fixture(params=["delta", "mysql"])
def extents(
    mariadb: EmbeddedMariaDB, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[MariadbExtents]:
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(pymysql.connect(**login, autocommit=True))  # type: ignore[arg-type]
        database = stack.enter_context(new_schema("mysql", mariadb, TARGET)) if request.param == "mysql" else None
        rules = [TableRule(f"{DATABASE}.{table}", snapshot=snapshot) for table, snapshot in SNAPSHOTS.items()]
        defined: Definition = definition(tmp_path, "mysql", {"databases": (DATABASE,)}, rules)
        defined = replace(defined, target=database.target if database else Target("delta", f"{tmp_path}/lake"))
        made = MariadbExtents(tmp_path, spark, defined, DATABASE, info=info, server=server, database=database)
        loaded = made.target(f"{DATABASE}.loaded")
        if database:
            made_table = f"CREATE TABLE {TARGET}.{loaded} (id int, a int, d date, v varchar(20))"
            database.execute(made_table, f"INSERT INTO {TARGET}.{loaded} {EXISTING}")
        else:
            spark.sql(EXISTING).write.format("delta").save(f"{tmp_path}/lake/{loaded}")
        made.at_source(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}", table="")
        stack.callback(made.at_source, f"DROP DATABASE {DATABASE}", table="")
        for table in SNAPSHOTS:
            made.at_source(*MAKE, table=table)
        made.run_until_idle()
        yield made


def test_tables_start_with_their_extents_get_every_change_and_are_verified(extents: MariadbExtents) -> None:
    everything = [1, 2, 3, 4, 5, 6]
    assert {table: extents.ids(table) for table in SNAPSHOTS} == {
        "whole": everything,
        "empty": [],
        "recent": [4, 5, 6],
        "needed": everything,
        "loaded": [1, 99],
        "sliced": [],
    }
    for table in SNAPSHOTS:
        extents.at_source(*CHANGES, table=table)
    extents.run_until_idle()
    assert {table: extents.ids(table) for table in SNAPSHOTS} == {
        "whole": [1, 3, 4, 6, 7],
        "empty": [1, 7],
        "recent": [1, 4, 6, 7],
        "needed": [1, 3, 4, 6, 7],
        "loaded": [1, 7, 99],
        "sliced": [1, 7],
    }
    assert extents.outcome("whole") == extents.outcome("needed") == SAME
    names = [f"{DATABASE}.{table}" for table in SNAPSHOTS]
    extents.record_command(CommandKind.VERIFY, *names)
    verified = extents.results(extents.run_successfully(), "verify")
    identical = {name.rpartition(".")[2]: verified[name].detail["identical"] for name in names}
    assert identical == dict.fromkeys(SNAPSHOTS, True) | {"loaded": False}, "row 99 is none of the source"


def test_slices_are_merged_beside_changes(extents: MariadbExtents) -> None:
    extents.at_source("UPDATE {t} SET a = 5 WHERE id = 3", "DELETE FROM {t} WHERE id = 2", table="sliced")
    interval = ("2026-01-01T00:00:00+00:00", "2026-01-06T00:00:00+00:00")
    run = extents.execute(replace(extents.dag_run(), interval=interval))
    assert run.green, run.problems
    assert extents.ids("sliced") == [1, 3, 4] and is_catching_up(extents.row("sliced"))
    extents.run_until_idle()
    assert extents.ids("sliced") == [1, 3, 4]
    assert {row["id"]: row["a"] for row in extents._copy("sliced")} == {1: 10, 3: 5, 4: 40}
    assert extents.execute(replace(extents.dag_run(), interval=interval)).green, "again, with the same result"
    assert extents.ids("sliced") == [1, 3, 4]


def test_a_lost_binlog_is_repaired_by_itself_only_where_that_is_the_mode(extents: MariadbExtents) -> None:
    extents.at_source("UPDATE {t} SET a = a + 5", table="needed")
    with extents.server.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW MASTER STATUS")
        last = cursor.fetchall()[0][0]

        def purged() -> bool:
            """Not before the engine has written its own."""
            cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
            cursor.execute("SHOW BINARY LOGS")
            return len(cursor.fetchall()) == 1

        until(purged, "an older binlog purged")
    for _ in range(3):
        extents.run()
    assert extents.states() == dict.fromkeys(SNAPSHOTS, TableState.BLOCKED) | {"needed": TableState.REPLICATING}
    assert extents.outcome("needed") == SAME
    assert "mode: initial" in extents.row("empty").remedy and "mode: initial" not in extents.row("recent").remedy
    names = [f"{DATABASE}.{table}" for table in ("whole", "empty", "recent")]
    extents.record_command(CommandKind.RESYNC, *names, approve_deletes=True)
    for _ in range(3):
        extents.run()
    assert extents.ids("empty") == [] and extents.ids("recent") == [4, 5, 6] and extents.outcome("whole") == SAME
    extents.at_source("UPDATE {t} SET a = a + 1 WHERE id = 1", table="empty")
    for _ in range(2):
        extents.run()
    assert extents.ids("empty") == [1]
