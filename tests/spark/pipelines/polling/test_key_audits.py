"""Audits of keys: only rows that were deleted leave the copy, whatever the copy has of the table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.states import TableState
from tests.delta_tables import read
from tests.spark.pipelines.polling.pipeline import PollingPipeline, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Database = psycopg.Connection[object]
OPTIONS: dict[str, Any] = {
    "driver": "postgresql+psycopg", "timestamp_column": "updated_at", "commit_latency": 1.0, "timestamp_latency": 1.0,
}  # fmt: skip
P, Q = "public.p", "public.q"
NEVER, ALWAYS = {"key_audit": 86400.0}, {"key_audit": 0.1}


@pytest.fixture
def shop(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    database: Database,
    connection: ConnectionInfo,
    spark: SparkSession,
) -> PollingPipeline:
    """Changes have brought the rows 11 to 20 of ``p``; its copy has not read the rows 1 to 10."""
    for name in ("p", "q"):
        columns = "id int PRIMARY KEY, updated_at timestamptz DEFAULT clock_timestamp()"
        database.execute(f"CREATE TABLE {name} ({columns})")
        database.execute(f"INSERT INTO {name} SELECT generate_series(1, 10), now() - interval '1 day'")
        database.execute(f"CREATE INDEX ON {name} (updated_at)")
    rules = (TableRule(P, history=request.param, snapshot=Snapshot(SnapshotMode.SCHEMA_ONLY)), TableRule(Q))
    polled = definition(tmp_path, "jdbc_poll", OPTIONS | NEVER, rules)
    made = PollingPipeline(tmp_path, spark, polled, connection, "id", lambda _: {})
    made.run_successfully()
    insert(database, 11, 20)
    made.run_until_idle()
    assert current(made) == {*range(11, 21)}
    return made


def insert(database: Database, first: int, last: int) -> None:
    for name in ("p", "q"):
        database.execute(f"INSERT INTO {name} SELECT generate_series({first}, {last})")
    time.sleep(1.2)


def current(shop: PollingPipeline) -> set[int]:
    rows = read(DeltaTable(shop.replicator().targets.of(P).locate(shop.target(P)))).to_pylist()
    return {row["id"] for row in rows if row.get("_cdc_is_current", True)}


def audit(shop: PollingPipeline, **more: Any) -> None:
    shop.with_source(options=ALWAYS)
    shop.run(**more)
    shop.with_source(options=NEVER)


@pytest.mark.parametrize("shop", [History.NONE, pytest.param(History.SCD2, marks=pytest.mark.nightly)], indirect=True)
def test_changes_before_and_after_an_audit_are_applied(shop: PollingPipeline, database: Database) -> None:
    shop.record_command(CommandKind.PAUSE, P)
    insert(database, 21, 21)
    shop.run_successfully()
    database.execute("DELETE FROM p WHERE id = 12")
    audit(shop)
    insert(database, 22, 22)
    shop.run_successfully()
    shop.record_command(CommandKind.RESUME, P)
    shop.run_until_idle()
    assert current(shop) == {11, *range(13, 23)}


@pytest.mark.parametrize(
    ("shop", "task"),
    [
        (History.SCD2, "reconcile.replay"),
        (History.NONE, "reconcile.resume_stream"),
        pytest.param(History.NONE, "reconcile.replay", marks=pytest.mark.nightly),
        pytest.param(History.SCD2, "reconcile.resume_stream", marks=pytest.mark.nightly),
    ],
    indirect=["shop"],
)
def test_an_audit_is_done_with_its_commit(shop: PollingPipeline, database: Database, task: str) -> None:
    database.execute("DELETE FROM p WHERE id = 12")
    audit(shop, leave_out=[task])
    assert shop.control(P).state.name is TableState.REPLICATING
    insert(database, 23, 23)
    shop.run_until_idle()
    assert current(shop) == {11, *range(13, 21), 23}
