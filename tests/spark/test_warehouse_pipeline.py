"""A warehouse as target, end to end: check, copy, merge, verify, find a difference, copy again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs import resync, snapshot
from tests.spark.contract.bigquery_kit import bigquery_kit
from tests.spark.contract.redshift_kit import redshift_kit
from tests.spark.contract.snowflake_kit import snowflake_kit
from tests.spark.contract.spanner_kit import SpannerKit, spanner_kit
from tests.spark.contract.sql_kit import SqlKit
from tests.spark.replicator import by_table, now
from tests.spark.test_verify import build_replicator, change, verified

pytestmark = [pytest.mark.jvm, pytest.mark.nightly]

KITS = {"bigquery": bigquery_kit, "redshift": redshift_kit, "snowflake": snowflake_kit, "spanner": spanner_kit}
Kit = SpannerKit | SqlKit


@pytest.fixture(params=KITS)
def kit(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Kit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


def test_tables_of_every_type_and_rule_are_copied_merged_verified_and_copied_again(
    tmp_path: Path, database: psycopg.Connection[object], connection: ConnectionInfo, kit: Kit
) -> None:
    secrets = kit.secrets
    replicator = build_replicator(
        tmp_path, database, connection, target=kit.target, warehouse=secrets.target, stage=secrets.stage
    )
    assert replicator.target.check(replicator.tasks()) == []
    lo = dict(replicator.source.open_stream([rule.source for rule in replicator.definition.tables]))
    copies = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run))
    assert {one.outcome for one in copies.values()} == {Outcome.DONE}, copies
    change(database)
    result = verified(replicator, lo)
    assert {name: one.problem for name, one in result.items()} == dict.fromkeys(result)
    wrong = {name: [c for c, same in one.detail["columns"].items() if not same] for name, one in result.items()}
    assert wrong == {f"public.{name}": [] for name in ("kinds", "soft", "bare", "heap", "part", "late")}
    assert all(one.detail["identical"] for one in result.values())

    kit.remove("soft", a=3, b="b3")
    soft = verified(replicator, replicator.log.manifest(replicator.log.sealed()).hi)["public.soft"]
    assert soft.detail["source_rows"] == soft.detail["target_rows"] + 1
    task, *_ = replicator.tasks("public.soft")
    current = replicator.target.state(task.table, task.target)
    assert current.control is not None
    replicator.target.fence(task.target, current, current.control.fenced(State(TableState.RESYNCING, now())))
    window = replicator.log.sealed()
    step = replicator.step(StepKind.RESYNC, replicator.tasks("public.soft"), window=window)
    assert by_table(replicator.run(step, resync.run))["public.soft"].outcome is Outcome.DONE
    live = {(a, b) for a, b, deleted in kit.rows("a", "b", "_cdc_deleted", table="soft") if not deleted}
    assert live == set(database.execute("SELECT a, b FROM soft").fetchall())
