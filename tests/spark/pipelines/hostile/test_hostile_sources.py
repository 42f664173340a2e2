"""Texts of a database that mean something in some language, through whole runs: names of tables and columns, keys,
values, defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.proof import drill_down
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.targets.delta.names import path_table
from spark_jobs.runtime.sessions import new_session
from tests.spark.databases import new_schema
from tests.spark.pipelines.hostile.hostile_database import (
    ADDED,
    DEFAULT,
    ID,
    MORE,
    SCHEMA,
    HostileDatabase,
    backticks,
    hostile_database,
)

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

SOURCES = {
    "postgres": Source("postgres", "source", options={"publication": SCHEMA}),
    "mysql": Source("mysql", "source", options={"databases": (SCHEMA,)}),
}
SERVERS = {"postgres": "postgres", "mysql": "mariadb"}


@pytest.fixture(
    params=[
        pytest.param((source, every), id=f"{source}{' with every name' if every else ''}")
        for source in sorted(SOURCES)
        for every in (False, True)
    ]
)
def hostile(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[HostileDatabase]:
    source, every = request.param
    server = request.getfixturevalue(SERVERS[source])
    with (
        new_schema(source, server, SCHEMA) as database,
        hostile_database(tmp_path, spark, database, SOURCES[source], every) as made,
    ):
        made.create()
        if source == "postgres":
            database.execute(f"CREATE PUBLICATION {SCHEMA} FOR TABLES IN SCHEMA {SCHEMA}")
        yield made
        if source == "postgres":
            slots = f"FROM pg_replication_slots WHERE slot_name LIKE '%{SCHEMA}%'"
            database.execute(f"DROP PUBLICATION {SCHEMA}", f"SELECT pg_drop_replication_slot(slot_name) {slots}")


def test_texts_of_a_database_are_copied_streamed_added_compared_and_repaired(
    hostile: HostileDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds of the intervals that are compared are keys."""
    monkeypatch.setattr(drill_down, "LEAF_ROWS", 2)
    hostile.run_successfully()
    hostile.run_until_idle()
    hostile.require_exact()
    change(hostile)
    hostile.run_until_idle()
    hostile.require_exact()
    add_columns(hostile)
    if hostile.database.kind == "mysql":  # the binlog has no defaults
        hostile.run()
        hostile.record_command(CommandKind.RESYNC, *hostile.tables, approve_deletes=True)
    hostile.run_until_idle()
    hostile.require_exact()
    hostile.record_command(CommandKind.VERIFY)
    verified = hostile.results(hostile.run_successfully(), "verify")
    assert {table: one.detail["identical"] for table, one in verified.items()} == dict.fromkeys(hostile.tables, True)
    damage(hostile)
    hostile.record_command(CommandKind.VERIFY, f"{SCHEMA}.keyed", f"{SCHEMA}.named", repair=True)
    hostile.run_successfully()
    hostile.require_exact()


def damage(hostile: HostileDatabase) -> None:
    session = new_session(hostile.spark)
    keyed, named = (path_table(hostile.located(table)) for table in ("keyed", "named"))
    session.sql(f"DELETE FROM {keyed} WHERE hash(k) % 20 = 0")
    session.sql(f"UPDATE {keyed} SET v = 'wrong' WHERE hash(k) % 20 = 1")
    session.sql(f"UPDATE {named} SET {backticks(hostile.columns[1])} = 'wrong' WHERE {backticks(ID)} = 1")


def change(hostile: HostileDatabase) -> None:
    for number, value in enumerate(hostile.values):
        if number % 3 == 0:
            hostile.execute_with(f"UPDATE {SCHEMA}.keyed SET v = %s WHERE k = %s", f"{value}!", value)
        elif number % 3 == 1:
            hostile.execute_with(f"UPDATE {SCHEMA}.keyed SET k = %s WHERE k = %s", f"{value} moved'", value)
        else:
            hostile.execute_with(f"DELETE FROM {SCHEMA}.keyed WHERE k = %s", value)
    sets = ", ".join(f"{hostile.quoted(name)} = 'changed'" for name in hostile.columns[3:30])
    hostile.database.execute(f"UPDATE {SCHEMA}.named SET {sets} WHERE {hostile.quoted(ID)} = 1")
    hostile.database.execute(f"DELETE FROM {SCHEMA}.named WHERE {hostile.quoted(ID)} = 2")
    hostile.insert_named(7)
    for table in hostile.tables_of_names:
        full = hostile.full(table)
        hostile.database.execute(f"UPDATE {full} SET v = 'A' WHERE id = 1", f"INSERT INTO {full} VALUES (3, 'c')")


def add_columns(hostile: HostileDatabase) -> None:
    for table in ("keyed", "named", *hostile.tables_of_names):
        with hostile.database.session() as cursor:
            cursor.execute(
                f"SELECT {'quote_literal' if hostile.database.kind == 'postgres' else 'QUOTE'}(%s)", [DEFAULT]
            )
            (literal,) = cursor.fetchone()
            cursor.execute(
                f"ALTER TABLE {hostile.full(table)} ADD COLUMN {hostile.quoted(ADDED)} varchar(200) DEFAULT {literal}"
            )
            cursor.execute(f"ALTER TABLE {hostile.full(table)} ADD COLUMN {hostile.quoted(MORE)} int DEFAULT 5")
    hostile.execute_with(f"INSERT INTO {SCHEMA}.keyed (k) VALUES (%s)", "last")
    hostile.insert_named(8)
    for table in hostile.tables_of_names:
        hostile.database.execute(f"INSERT INTO {hostile.full(table)} (id) VALUES (4)")
