"""Tables of PostgreSQL and MariaDB that start without rows or with some of them, and tables that are copied again where
their changes cannot be continued."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, TableRule
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.pipelines.schema_changes.test_policies import (
    DATABASE,
    SLOTS,
    PolicyPipeline,
    execute,
    policy_definition,
    source_database,
)
from tests.spark.targets_of_kinds import target_of_kind

pytestmark = [pytest.mark.jvm, pytest.mark.server]

M = SnapshotMode
MAKE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a int, d date, v text)",
    "ALTER TABLE {t} REPLICA IDENTITY FULL",
    "INSERT INTO {t} SELECT k, k * 10, '2026-01-01'::date + k, repeat('v', 20) FROM generate_series(1, 6) k",
)
CHANGES = (
    "UPDATE {t} SET a = a + 1 WHERE id = 1",
    "DELETE FROM {t} WHERE id IN (2, 5)",
    "INSERT INTO {t} VALUES (7, 70, '2026-02-01', 'new')",
)
RECENT = (Condition("d", Comparison.GREATER, "2026-01-04"), Condition("v", Comparison.NOT_EQUAL, "x"))
RULES = (
    TableRule("public.whole"),
    TableRule("public.empty", snapshot=Snapshot(M.SCHEMA_ONLY)),
    TableRule("public.recent", snapshot=Snapshot(where=RECENT)),
    TableRule("public.needed", snapshot=Snapshot(M.WHEN_NEEDED)),
)
TABLES = [rule.source.removeprefix("public.") for rule in RULES]


@dataclass(kw_only=True)
class Extents(PolicyPipeline):
    def at_source(self, *statements: str, table: str = "") -> None:
        with psycopg.connect(self.server.dsn(DATABASE), autocommit=True) as connection:
            for one in [table] if table else TABLES:
                execute(connection, one, statements)

    def ids(self, table: str) -> list[int]:
        return sorted(row["id"] for row in self._copy(table))

    def equal_rows(self, table: str) -> bool:
        """Whether each row of the copy is one of the source."""
        names, truth = self.truth(table)
        rows = [tuple(str(row[name]) for name in names) for row in self._copy(table)]
        return all(truth[row] == 1 for row in rows)

    def verified(self, *tables: str) -> dict[str, dict[str, Any]]:
        names = [f"public.{table}" for table in tables or TABLES]
        self.record_command(CommandKind.VERIFY, *names)
        results = self.results(self.run_successfully(), "verify")
        return {name.removeprefix("public."): results[name].detail for name in names}


@pytest.fixture(
    scope="module",
    params=["postgres", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("delta", "iceberg", "mysql"))],
)
def extents(
    postgres: EmbeddedPostgres,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Extents]:
    kind, folder = request.param, tmp_path_factory.mktemp("extents")
    with contextlib.ExitStack() as stack:
        target, database = stack.enter_context(target_of_kind(kind, DATABASE, folder, request))
        source = stack.enter_context(source_database(postgres, ()))
        for table in TABLES:
            execute(source, table, MAKE)
        definition = policy_definition(folder, target, RULES)
        made = Extents(folder, spark, definition, "public", kind=kind, server=postgres, database=database)
        made.run_until_idle()
        yield made


def test_a_table_starts_with_the_rows_of_its_extent_and_gets_every_change(extents: Extents) -> None:
    assert {table: extents.ids(table) for table in TABLES} == {
        "whole": [1, 2, 3, 4, 5, 6],
        "empty": [],
        "recent": [4, 5, 6],
        "needed": [1, 2, 3, 4, 5, 6],
    }
    extents.at_source(*CHANGES)
    extents.run_until_idle()
    assert extents.ids("whole") == [1, 3, 4, 6, 7] and extents.ids("empty") == [1, 7]
    assert extents.ids("recent") == [1, 4, 6, 7]
    assert all(extents.equal_rows(table) for table in TABLES)
    assert extents.row("empty").control is not None and not extents.control("public.empty").extent.rows


@pytest.mark.nightly
def test_verify_compares_the_rows_that_the_copy_must_have(extents: Extents) -> None:
    assert {table: detail["identical"] for table, detail in extents.verified().items()} == dict.fromkeys(TABLES, True)
    if extents.database is None:
        return
    schema = extents.database.schema
    extents.database.execute(
        f"UPDATE {schema}.empty SET a = 0 WHERE id = 7",
        f"DELETE FROM {schema}.recent WHERE id = 6",
        f"UPDATE {schema}.recent SET a = 0 WHERE id = 4",
    )
    found = extents.verified("empty", "recent")
    assert found["empty"]["differences"] == ["7"] and found["recent"]["differences"] == ["4", "6"]
    extents.database.execute(
        f"UPDATE {schema}.empty SET a = 70 WHERE id = 7", f"UPDATE {schema}.recent SET a = 40 WHERE id = 4"
    )


@pytest.mark.nightly
def test_a_lost_stream_is_repaired_by_itself_only_where_that_is_the_mode(extents: Extents) -> None:
    with psycopg.connect(extents.server.dsn(DATABASE), autocommit=True) as connection:
        connection.execute(SLOTS.encode(), [DATABASE])
    extents.at_source("UPDATE {t} SET a = a + 5")
    for _ in range(3):
        extents.run()
    states = {table: extents.row(table).state for table in TABLES}
    assert states == dict.fromkeys(TABLES, TableState.BLOCKED) | {"needed": TableState.REPLICATING}
    assert extents.outcome("needed") == SAME
    assert "mode: initial" in extents.row("empty").remedy and "mode: initial" not in extents.row("recent").remedy
    extents.record_command(CommandKind.RESYNC, *(f"public.{table}" for table in TABLES), approve_deletes=True)
    extents.run_until_idle()
    assert extents.ids("empty") == [] and extents.ids("recent") == [4, 6, 7]
    extents.at_source("UPDATE {t} SET a = a + 1 WHERE id IN (1, 7)")
    extents.run_until_idle()
    assert extents.ids("empty") == [1, 7] and extents.ids("recent") == [1, 4, 6, 7]
    assert extents.outcome("whole") == extents.outcome("needed") == SAME
    assert extents.equal_rows("empty") and extents.equal_rows("recent")


def test_a_missing_copy_is_made_again_only_where_that_is_the_mode(extents: Extents) -> None:
    if extents.database is None:
        pytest.skip("another client drops tables of a database")
    for table in ("needed", "recent"):
        extents.database.execute(f"DROP TABLE {extents.database.schema}.{table}")
    extents.at_source("UPDATE {t} SET a = a + 1 WHERE id = 4")
    for _ in range(2):
        extents.run()
    assert extents.outcome("needed") == SAME and "TGT002" in extents.row("recent").error
