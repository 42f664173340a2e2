"""Many tables are copied from a server that has a few replication slots and senders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from spark_jobs import snapshot
from spark_jobs.runtime import job
from tests.delta_tables import read
from tests.spark.replicator import Replicator, by_table

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TABLES = 60


@pytest.fixture
def stock() -> Iterator[EmbeddedPostgres]:
    """With the default settings of PostgreSQL; one slot is that of the stream, another one belongs to another
    client."""
    with EmbeddedPostgres({"max_replication_slots": "10", "max_wal_senders": "10"}) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            for number in range(TABLES):
                connection.execute(f"CREATE TABLE t{number} AS SELECT {number} AS n".encode())
                connection.execute(f"ALTER TABLE t{number} ADD PRIMARY KEY (n)".encode())
            connection.execute("CREATE PUBLICATION many FOR ALL TABLES")
            for slot in ("cdc_many", "of_somebody_else"):
                connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        yield server


def test_sixty_tables_are_copied_from_a_stock_server_by_a_driver_with_many_cores(
    stock: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "max_parallel_tables", lambda: 32)
    source = ConnectionInfo("source", stock.host, stock.port, stock.user, stock.password, schema="postgres")
    replicator = Replicator(tmp_path, "many", source, [TableRule("public.*")])
    results = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run))
    assert {str(one.problem) for one in results.values() if one.outcome is not Outcome.DONE} == set()
    assert len(results) == TABLES
    for task in replicator.tasks():
        (row,) = read(DeltaTable(replicator.target.locate(task.target))).to_pylist()
        assert row["n"] == int(task.table.removeprefix("public.t"))
