"""Times of polled tables that the lake has no type for, from the first copy to the merge: kept as text, kept beside
a NULL, or failing their table alone, without loss."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.spark.conftest import Database
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition
from tests.spark.pipelines.polling.test_jdbc_poll_pipeline import OPTIONS, old_enough

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TEXTS, NULLS, REFUSED = "public.texts", "public.nulls", "public.refused"
RULES = (
    TableRule(TEXTS, columns=Columns(cast={"d": "text"})),
    TableRule(NULLS, on_unrepresentable=OnUnrepresentable.SET_NULL),
    TableRule(REFUSED),
)


def truth(table: str) -> Rows:
    raise AssertionError(f"the rows of {table} are looked at one by one")


def test_neighbours_of_the_calendar_limits_stay_distinct_in_copies_and_in_windows(
    tmp_path: Path, database: Database, connection: ConnectionInfo, spark: SparkSession
) -> None:
    for name, key in (("texts", "d"), ("nulls", "id"), ("refused", "id")):
        database.execute(
            f"CREATE TABLE {name} (id int, d date, updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY ({key}))"
        )
        database.execute(f"INSERT INTO {name} VALUES (1, '9999-12-31')")
        if name != "refused":
            database.execute(f"INSERT INTO {name} VALUES (2, 'infinity'), (3, '0044-03-15 BC')")
    polled = PollingPipeline(
        tmp_path, spark, definition(tmp_path, "jdbc_poll", OPTIONS, RULES), connection, "id", truth
    )
    old_enough()
    polled.run_successfully()
    for name in ("texts", "nulls", "refused"):
        database.execute(f"INSERT INTO {name} VALUES (4, '-infinity'), (5, '0001-01-01')")
        database.execute(f"UPDATE {name} SET updated_at = now(), id = id + 10 WHERE d = '9999-12-31'")
    database.execute("UPDATE nulls SET updated_at = now(), d = '10000-01-01' WHERE id = 3")
    old_enough()
    dag_run = polled.run()
    assert any("QUA001" in line and REFUSED in line and "{cast: {d: text}}" in line for line in dag_run.problems), (
        dag_run.problems
    )

    texts = {key: row["d"] for key, row in polled.rows(TEXTS).items()}
    assert texts == {11: "9999-12-31", 2: "infinity", 3: "0044-03-15 BC", 4: "-infinity", 5: "0001-01-01"}
    nulls = {key: (row["d"], row["_cdc_text_d"]) for key, row in polled.rows(NULLS).items()}
    assert nulls == {
        # A poll does not return the old key of the row.
        1: (date(9999, 12, 31), None),
        11: (date(9999, 12, 31), None),
        2: (None, "infinity"),
        3: (None, "10000-01-01"),
        4: (None, "-infinity"),
        5: (date(1, 1, 1), None),
    }
    assert polled.rows(REFUSED).keys() == {1}, "its rows are unchanged"
    states = {table: row.state for table, row in polled.replicator().state.tables(polled.definition.name).items()}
    assert states[TEXTS] is states[NULLS] is TableState.REPLICATING and states[REFUSED] is TableState.BLOCKED
