"""The job names executors that lack a package or a folder, before it writes anything."""

from __future__ import annotations

import socket
import venv
from pathlib import Path

import psycopg
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.logstore import class_path
from spark_jobs.runtime.cluster_checks import missing_paths
from tests.spark.cluster import standalone
from tests.spark.replicator import Replicator

IN_SPARK_TASKS = """
from spark_jobs import extract
from spark_jobs.runtime import harness
from spark_jobs.runtime.parallel import run_in_tasks

if __name__ == "__main__":
    extract.run_in_driver = run_in_tasks  # the driver would read a single split itself
    harness.main(extract.run)
"""


def test_paths_that_a_host_lacks_are_reported_with_the_name_of_the_host(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    assert missing_paths([str(tmp_path), absent], 0) == (socket.gethostname(), [absent])


@pytest.mark.nightly
@pytest.mark.jvm
@pytest.mark.server
def test_a_package_that_executors_lack_is_named_with_the_line_to_type_and_no_window_is_sealed(
    tmp_path: Path, database: psycopg.Connection[object], connection: ConnectionInfo
) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    database.execute("CREATE PUBLICATION bare FOR TABLE a")
    replicator = Replicator(tmp_path, "bare", connection, [TableRule("public.a")])
    lo = dict(replicator.source.open_stream(["public.a"]))
    database.execute("INSERT INTO a VALUES (1)")
    limit = dict(replicator.source.status(lo, ["public.a"]).limit)
    venv.create(tmp_path / "bare", with_pip=False)
    step = replicator.step(StepKind.EXTRACT, window=1, lo=lo, limit=limit)
    with standalone(tmp_path) as master:
        conf = {
            "spark.master": master,
            "spark.executor.memory": "512m",
            "spark.jars": ",".join(map(str, class_path(["delta"]))),
            "spark.executorEnv.PYTHONPATH": "",
        }
        python = {"PYTHONPATH": "", "PYSPARK_PYTHON": str(tmp_path / "bare/bin/python")}
        environment = {**python, "PYSPARK_DRIVER_PYTHON": "python"}
        (tmp_path / "in_spark_tasks.py").write_text(IN_SPARK_TASKS)
        process = replicator.submit(step, tmp_path / "in_spark_tasks.py", conf=conf, environment=environment)
        output, _ = process.communicate()
    assert process.returncode == 78, output
    problem = replicator.result(step).problem
    assert problem is not None and problem.code in ("ENV010", "ENV014"), problem
    assert "pip install 'airflow-cdc-provider[postgres]'" in problem.do
    assert replicator.log.sealed() == 0
