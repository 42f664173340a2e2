"""A database as target, end to end: copy, merge, verify, copy again."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineName
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs import resync, snapshot
from tests.spark.databases import Database
from tests.spark.replicator import by_table, now
from tests.spark.test_verify import build_replicator, change, verified

pytestmark = pytest.mark.jvm


def test_tables_of_every_type_and_rule_are_copied_merged_verified_and_copied_again(
    spark: SparkSession,
    tmp_path: Path,
    database: psycopg.Connection[object],
    connection: ConnectionInfo,
    warehouse: Database,
) -> None:
    floats = {} if warehouse.kind == "postgres" else {"floats": "text"}
    target = Target(warehouse.kind, connection="warehouse", options={"schema": warehouse.schema, **floats})
    replicator = build_replicator(tmp_path, database, connection, target=target, warehouse=warehouse.connection)
    assert replicator.target.check(replicator.tasks()) == []
    lo = dict(replicator.source.open_stream([rule.source for rule in replicator.definition.tables]))
    copies = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run)).values()
    assert {one.engine and str(one.engine.engine) for one in copies} == {EngineName.LOCAL}, copies
    change(database)
    result = verified(replicator, lo)
    assert {name: one.problem for name, one in result.items()} == dict.fromkeys(result)
    wrong = {name: [c for c, same in one.detail["columns"].items() if not same] for name, one in result.items()}
    assert wrong == {f"public.{name}": [] for name in ("kinds", "soft", "bare", "heap", "part", "late")}
    assert all(one.detail["identical"] for one in result.values())

    warehouse.execute(f"DELETE FROM {warehouse.schema}.soft WHERE a = 3")
    task, *_ = replicator.tasks("public.soft")
    current = replicator.target.state(task.table, task.target)
    assert current.control is not None
    replicator.target.fence(task.target, current, current.control.fenced(State(TableState.RESYNCING, now())))
    window = replicator.log.sealed()
    step = replicator.step(StepKind.RESYNC, replicator.tasks("public.soft"), window=window)
    assert by_table(replicator.run(step, resync.run))["public.soft"].outcome is Outcome.DONE
    copied_again = f"SELECT count(*), sum(CASE WHEN _cdc_deleted THEN 1 ELSE 0 END) FROM {warehouse.schema}.soft"
    live = database.execute("SELECT count(*) FROM soft").fetchone()
    (found,) = warehouse.execute(copied_again)
    assert live is not None and found[0] - int(found[1]) == live[0]  # type: ignore[index]
