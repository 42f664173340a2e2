"""The same jobs on a real cluster: executors are separate processes that have the zip and the step alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult
from airflow_cdc_provider.core.spec.definition import OnDelete, Spark, TableRule
from airflow_cdc_provider.core.spec.engines import EngineMode, EngineName
from airflow_cdc_provider.logstore import class_path
from tests.spark.cluster import standalone
from tests.spark.replicator import Replicator, by_table


@pytest.mark.jvm
@pytest.mark.nightly
def test_copying_landing_folding_merging_and_comparing_work_on_a_standalone_cluster(
    tmp_path: Path, database: psycopg.Connection[object], connection: ConnectionInfo
) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY, note text)")
    # Large enough for a copy in several splits: the driver reads a single one.
    database.execute("INSERT INTO a SELECT n, repeat('x', 700) FROM generate_series(1, 60000) n")
    database.execute("CREATE PUBLICATION shop FOR TABLE a")
    replicator = Replicator(tmp_path, "shop", connection, [TableRule("public.a", on_delete=OnDelete.SOFT)])
    replicator.definition = replace(replicator.definition, spark=Spark(engine=EngineMode.SPARK))
    lo = dict(replicator.source.open_stream(["public.a"]))

    with standalone(tmp_path) as master:

        def submit(step: Step) -> StepResult:
            process = replicator.submit(
                step,
                conf={
                    "spark.master": master,
                    "spark.executor.memory": "512m",
                    "spark.jars": ",".join(map(str, class_path(["delta"]))),
                },
                environment={"PYTHONPATH": ""},
            )
            output, _ = process.communicate()
            assert process.returncode == 0, output
            assert connection.password not in output
            return replicator.result(step)

        copied = submit(replicator.step(StepKind.SNAPSHOT))
        database.execute("UPDATE a SET note = 'y' WHERE id <= 100")
        database.execute("DELETE FROM a WHERE id = 1")
        limit = dict(replicator.source.status(lo, ["public.a"]).limit)
        verified = submit(replicator.step(StepKind.VERIFY, window=1, lo=lo, limit=limit))

    assert by_table(copied)["public.a"].rows == 60000
    assert len(DeltaTable(replicator.target.locate("a")).file_uris()) > 1
    table = by_table(verified)["public.a"]
    assert table.outcome is Outcome.DONE
    assert {one.engine.engine for one in (by_table(copied)["public.a"], table) if one.engine} == {EngineName.SPARK}
    assert table.counts == {"updated": 100}
    assert (table.detail["identical"], table.detail["target_rows"]) == (True, 59999)
    assert verified.peak_memory_bytes["python"] < 300 << 20
