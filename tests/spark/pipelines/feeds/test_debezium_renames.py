"""Columns and tables that are renamed behind a real Debezium, which writes its schema-change topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import Reconcile, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.debezium.restart_databases import DATABASE, MariaDB
from tests.spark.pipelines.feeds.debezium_copy import DebeziumCopy, debezium_copy

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

PREFIX = MariaDB.prefix


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[DebeziumCopy]:
    """Of ``t`` and ``emptied``. The schema-change topic is not read until the first copies are made."""
    folder = tmp_path_factory.mktemp("renames")
    with (
        EmbeddedKafka() as broker,
        EmbeddedMariaDB() as server,
        debezium_copy(folder, spark, broker, MariaDB(server, f"{folder}/history"), Reconcile.MANUAL) as made,
    ):
        before = made.feed.definition
        options = {**before.source.options, "topics": [PREFIX, f"{PREFIX}.*"]}
        features = {"table_features": ["columnMapping", "typeWidening"]}
        made.feed.definition = replace(
            before,
            source=replace(before.source, options=options),
            target=Target("delta", before.target.location, options=features),
            schema_changes=SchemaPolicy(rename=OnChange.APPLY),
        )
        yield made


def altered(made: DebeziumCopy, *statements: str) -> None:
    made.database.do(*statements)
    made.awaited()
    made.feed.run_until_idle()


def truth(made: DebeziumCopy, table: str) -> dict[int, dict[str, Any]]:
    database = made.database
    assert isinstance(database, MariaDB)
    return {row["id"]: row for row in database.all_rows(table)}


def copied(made: DebeziumCopy, table: str, *columns: str) -> dict[int, dict[str, Any]]:
    return made.feed.copied_rows(f"{DATABASE}.{table}", "id", "id", *columns)


def floor(made: DebeziumCopy, table: str) -> str:
    row = made.feed.rows_of()[f"{DATABASE}.{table}"]
    assert row.state is TableState.REPLICATING and row.control is not None, row
    return row.control.floor


def test_a_renamed_column_and_then_its_renamed_table_go_on_in_the_same_copy(copies: DebeziumCopy) -> None:
    """The column has a value in each row. Both are renamed once more within one window, and the table is altered by
    the statement that renames it."""
    first = floor(copies, "t")
    altered(
        copies,
        "ALTER TABLE t CHANGE name title varchar(20) NOT NULL",
        "UPDATE t SET title = 'second' WHERE id = 2",
        "INSERT INTO t VALUES (7, 'seven')",
    )
    assert copied(copies, "t", "title") == truth(copies, "t")
    altered(
        copies,
        "UPDATE t SET title = 'last as t' WHERE id = 3",
        "RENAME TABLE t TO moved",
        "UPDATE moved SET title = 'as moved' WHERE id = 1",
        "ALTER TABLE moved RENAME TO `moved again`, RENAME COLUMN title TO `the title`, ADD z int",
        "UPDATE `moved again` SET `the title` = 'as moved again', z = 5 WHERE id = 2",
        "DELETE FROM `moved again` WHERE id = 7",
    )
    assert copied(copies, "t", "the title", "z") == truth(copies, "moved again")
    altered(copies, "INSERT INTO `moved again` VALUES (8, 'eight', 8)", "DELETE FROM `moved again` WHERE id = 1")
    assert copied(copies, "t", "the title", "z") == truth(copies, "moved again")
    assert floor(copies, "t") == first, "copied again"


def test_a_table_that_replaces_another_one_keeps_the_copy(copies: DebeziumCopy) -> None:
    """As tools for schema changes do: they fill a shadow table, and swap the names."""
    first = floor(copies, "emptied")
    altered(
        copies,
        "CREATE TABLE shadow LIKE emptied",
        "INSERT INTO shadow SELECT * FROM emptied",
        "RENAME TABLE emptied TO emptied_old, shadow TO emptied",
        "INSERT INTO emptied VALUES (5, 'five')",
    )
    assert copied(copies, "emptied", "name") == truth(copies, "emptied")
    altered(copies, "DROP TABLE emptied_old", "UPDATE emptied SET name = 'x'")
    assert copied(copies, "emptied", "name") == truth(copies, "emptied")
    assert floor(copies, "emptied") == first
