"""Tables of MariaDB that are renamed: followed by InnoDB's id and by the statements in the binlog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.spark.pipelines.polling.pipeline import definition
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.pipelines.schema_changes.test_mariadb_statements import DATABASE, MariadbPipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

FOLLOWED = ("once", "thrice", "by_alter", "my-table", "altered_too", "swapped", "rebuilt", "parted", "gone", "resynced")
TABLES = (*FOLLOWED, "stopped")
MAKE = ("CREATE TABLE {t} (id int PRIMARY KEY, a int)", "INSERT INTO {t} VALUES (1, 10), (2, 20)")
UPDATE, INSERT, DELETE = (
    "UPDATE {t} SET a = a + 1 WHERE id = 1",
    "INSERT INTO {t} (id, a) VALUES (3, 30)",
    "DELETE FROM {t} WHERE id = 2",
)


@dataclass(kw_only=True)
class RenamedTables(MariadbPipeline):
    execute_on: Callable[[str, tuple[str, ...]], None]

    def floor(self, table: str) -> str:
        """It changes with each copy."""
        control = self.control(f"{DATABASE}.{table}")
        assert control is not None
        return control.floor

    def at_source(self, table: str, *statements: str) -> None:
        self.execute_on(table, statements)


@pytest.fixture(scope="module")
def renamed(
    mariadb: EmbeddedMariaDB, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RenamedTables]:
    folder = tmp_path_factory.mktemp("renamed")
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as server:

        def execute(table: str, statements: tuple[str, ...]) -> None:
            with server.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement.replace("{t}", f"`{table}`"))

        execute("", (f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}"))
        for table in TABLES:
            execute(table, MAKE)
        execute("", ("ALTER TABLE parted PARTITION BY HASH (id) PARTITIONS 3",))
        follow = SchemaPolicy(rename=OnChange.APPLY)
        rules = [TableRule(f"{DATABASE}.{table}", schema_changes=follow) for table in FOLLOWED]
        made = definition(folder, "mysql", {"databases": (DATABASE,)}, [*rules, TableRule(f"{DATABASE}.stopped")])
        pipeline = RenamedTables(folder, spark, made, DATABASE, info=info, server=server, execute_on=execute)
        pipeline.settle()
        assert {table for table in TABLES if pipeline.outcome(table) == SAME} == set(TABLES)
        yield pipeline
        execute("", (f"DROP DATABASE {DATABASE}",))


@pytest.mark.parametrize(
    ("table", "name", "statement"),
    [
        ("once", "moved", "RENAME TABLE {t} TO moved"),
        pytest.param("by_alter", "altered", "ALTER TABLE {t} RENAME altered", marks=pytest.mark.nightly),
        pytest.param(
            "my-table", "mo-ved", "ALTER TABLE {t} RENAME TO `statements`.`mo-ved`", marks=pytest.mark.nightly
        ),
        pytest.param("parted", "parts", "RENAME TABLE {t} TO parts", marks=pytest.mark.nightly),
    ],
)
def test_a_renamed_table_is_followed_without_another_copy(
    renamed: RenamedTables, table: str, name: str, statement: str
) -> None:
    floor = renamed.floor(table)
    renamed.at_source(table, UPDATE, statement)
    renamed.at_source(name, INSERT, "ALTER TABLE {t} ADD w int", "UPDATE {t} SET w = 4 WHERE id = 3")
    renamed.settle()
    assert renamed.equals(table, name)
    renamed.at_source(name, DELETE)
    renamed.settle()
    assert renamed.equals(table, name) and renamed.floor(table) == floor


def test_rows_of_other_tables_with_the_same_names_are_not_copied(renamed: RenamedTables) -> None:
    floor = renamed.floor("thrice")
    other = ("CREATE TABLE {t} (id int PRIMARY KEY, a int)", "INSERT INTO {t} VALUES (90, 1)", "DROP TABLE {t}")
    renamed.at_source("third", *other)
    renamed.at_source("thrice", UPDATE, "RENAME TABLE {t} TO first")
    renamed.at_source("thrice", *other)
    renamed.at_source("first", INSERT, "RENAME TABLE {t} TO second, second TO third")
    renamed.at_source("first", *other)
    renamed.at_source("third", DELETE)
    renamed.settle()
    assert renamed.equals("thrice", "third") and renamed.floor("thrice") == floor


@pytest.mark.nightly
def test_a_renamed_table_is_copied_again_under_its_new_name(renamed: RenamedTables) -> None:
    renamed.at_source("resynced", UPDATE, "RENAME TABLE {t} TO renewed")
    renamed.settle()
    floor = renamed.floor("resynced")
    renamed.record_command(CommandKind.RESYNC, f"{DATABASE}.resynced")
    renamed.settle()
    renamed.at_source("renewed", INSERT)
    renamed.settle()
    assert renamed.equals("resynced", "renewed") and renamed.floor("resynced") > floor


@pytest.mark.parametrize(
    ("table", "statements"),
    [
        pytest.param(
            "altered_too",
            ("ALTER TABLE {t} RENAME TO altered_two, ADD b int DEFAULT 7",),
            marks=pytest.mark.nightly,
        ),
        (
            "swapped",
            (
                "CREATE TABLE swapped_new (id int PRIMARY KEY, a int)",
                "RENAME TABLE {t} TO swapped_old, swapped_new TO {t}",
            ),
        ),
    ],
)
def test_a_table_that_is_renamed_with_other_changes_is_stopped(
    renamed: RenamedTables, table: str, statements: tuple[str, ...]
) -> None:
    renamed.at_source(table, *statements)
    renamed.settle()
    assert renamed.row(table).state is TableState.BLOCKED, renamed.row(table)


@pytest.mark.parametrize(
    ("table", "statements"),
    [
        pytest.param(
            "rebuilt",
            ("ALTER TABLE {t} FORCE", "RENAME TABLE {t} TO rebuilt_away"),
            marks=pytest.mark.nightly,
        ),
        pytest.param("gone", ("RENAME TABLE {t} TO away", "DROP TABLE away"), marks=pytest.mark.nightly),
        ("stopped", ("RENAME TABLE {t} TO refused",)),
    ],
)
def test_a_table_without_its_identity_or_that_must_not_be_followed_is_missed(
    renamed: RenamedTables, table: str, statements: tuple[str, ...]
) -> None:
    renamed.at_source(table, *statements)
    assert renamed.is_missed(table)
