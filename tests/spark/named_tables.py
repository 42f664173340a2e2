"""A second application on a metastore, for ``test_catalog``: it applies a window, copies again, uses names that are
taken, and prints as JSON what a reader finds under the names.

    python -m tests.spark.named_tables SETUP.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import StepKind, TableResult
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs import extract, merge, resync, snapshot, stage
from spark_jobs.runtime.sessions import build_session
from tests.spark.replicator import BUILT_AHEAD, LOCAL, Replicator, by_table, driver_settings, now

CATALOG = "default"


def main() -> None:
    setup = json.loads(Path(sys.argv[1]).read_text())
    rules = [TableRule("public.a"), TableRule("public.b")]
    replicator = named(
        Replicator(Path(setup["folder"]), setup["name"], from_plain(ConnectionInfo, setup["connection"]), rules)
    )
    spark = session(setup["conf"])
    report: dict[str, Any] = {"copied": found(spark)}
    stream(replicator, setup["lo"])
    report["streamed"] = found(spark)
    copy_again(replicator)
    report["copied again"] = found(spark)
    elsewhere = f"{setup['folder']}/elsewhere"
    spark.range(7).write.format("delta").save(elsewhere)
    spark.sql(f"CREATE TABLE {CATALOG}.b USING delta LOCATION '{elsewhere}'")
    report["taken"] = problem(first_copy(replicator))
    report["taken rows"] = spark.table(f"{CATALOG}.b").count()
    report["absent"] = problem(first_copy(named(replicator, "absent")))
    report["written"] = replicator.target.state("public.b", "b").exists
    spark.stop()
    print("\n" + json.dumps(report))


def named(replicator: Replicator, catalog: str = CATALOG) -> Replicator:
    definition = replicator.definition
    replicator.definition = replace(definition, target=replace(definition.target, catalog=catalog))
    return replicator


def session(conf: dict[str, str]) -> SparkSession:
    return build_session("reader", ["delta"], {**LOCAL, **driver_settings(BUILT_AHEAD), **conf})


def found(spark: SparkSession) -> list[dict[str, Any]]:
    """The rows under the name, for a reader without the paths of the folders."""
    rows = spark.sql(f"SELECT * FROM {CATALOG}.a ORDER BY id").drop("_cdc_order").collect()
    return [row.asDict() for row in rows]


def stream(replicator: Replicator, lo: dict[str, str]) -> None:
    limit = dict(replicator.source.status(lo, ["public.a", "public.b"]).limit)
    by_table(replicator.run(replicator.step(StepKind.EXTRACT, window=1, lo=lo, limit=limit), extract.run))
    staged = replicator.step(StepKind.STAGE, replicator.tasks("public.a"), window=1)
    by_table(replicator.run(staged, stage.run))
    tasks = replicator.tasks("public.a")
    by_table(replicator.run(replicator.step(StepKind.MERGE, tasks, window=1, merge_of=staged.attempt), merge.run))


def copy_again(replicator: Replicator) -> None:
    (task,) = replicator.tasks("public.a")
    current = replicator.target.state("public.a", task.target)
    assert current.control is not None
    fence = current.control.fenced(State(TableState.RESYNCING, since=now()), attempt="pause")
    replicator.target.fence(task.target, current, fence)
    by_table(replicator.run(replicator.step(StepKind.RESYNC, replicator.tasks("public.a"), window=1), resync.run))


def first_copy(replicator: Replicator) -> TableResult:
    step = replicator.step(StepKind.SNAPSHOT, replicator.tasks("public.b"), window=1)
    return by_table(replicator.run(step, snapshot.run))["public.b"]


def problem(result: TableResult) -> list[str]:
    assert result.problem is not None, result
    return [result.outcome.value, result.problem.code, result.problem.found]


if __name__ == "__main__":
    main()
