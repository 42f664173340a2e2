"""A window is read with the schemas of the log, also for tables that are behind the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step, StepKind, TableTask
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from spark_jobs.windows.split_reader import WindowSplit, land_split
from spark_jobs.windows.window_writer import LandedSplit, Limits
from tests.connectors.mysql_database import Shop
from tests.mariadb import embedded
from tests.spark.pipelines.polling.pipeline import definition

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedMariaDB]:
    with embedded() as server:
        yield server


@pytest.fixture
def shop(server: EmbeddedMariaDB) -> Shop:
    shop = Shop(server)
    shop.sql("CREATE TABLE a (id int PRIMARY KEY, word text)", "INSERT INTO a VALUES (1, 'x')")
    shop.window()
    return shop


def paused(shop: Shop, schema: TableSchema) -> TableTask:
    task = shop.task("a", schema)
    assert task.control is not None
    control = replace(task.control, state=State(TableState.PAUSED, "2026-01-01T00:00:00Z"))
    return replace(task, state=TableState.PAUSED, control=control)


def landed(shop: Shop, folder: Path, task: TableTask, known: TableSchema) -> LandedSplit:
    """The next window, by one task as Spark runs it. ``known``: the schema at the end of the one before."""
    limit = shop.status("a").limit
    made = definition(folder, "mysql", {"databases": [shop.name]}, [task.rule])
    step = Step(
        StepKind.EXTRACT, made, "r", "x", "f", "", "me", "log", 1, {}, (task,), 2, dict(shop.position), {**limit}
    )
    step = replace(step, source_identity=shop.source.identity())
    (split,) = shop.source.splits(shop.position, limit)
    result = land_split(WindowSplit(step, Secrets(shop.source.client.info), {task.table: known}, split, 0, Limits()))
    assert result.landed is not None, result.error
    return result.landed


def test_a_column_that_an_earlier_window_added_and_this_one_recreates_is_a_hole(shop: Shop, tmp_path: Path) -> None:
    """The copy of a paused table lacks the column; rows of the earlier window have values of the dropped column."""
    schema = shop.task("a").schema
    shop.sql("ALTER TABLE a ADD extra int", "UPDATE a SET extra = 5")
    shop.window(shop.task("a", schema))
    known = shop.task("a").schema
    shop.sql("ALTER TABLE a DROP extra, ADD extra int")
    (hole,) = landed(shop, tmp_path, paused(shop, schema), known).holes
    assert hole.detail == "column extra was dropped and another one was added under its name"


def test_a_column_that_an_earlier_window_added_is_none_that_was_generated(shop: Shop, tmp_path: Path) -> None:
    schema = shop.task("a").schema
    shop.sql("ALTER TABLE a ADD extra int", "UPDATE a SET extra = 5")
    shop.window(shop.task("a", schema))
    known = shop.task("a").schema
    shop.sql("UPDATE a SET extra = 6", "ALTER TABLE a MODIFY extra int COMMENT 'x'")
    assert not landed(shop, tmp_path, paused(shop, schema), known).holes
