"""A single split is read by this process, several splits by other processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.parallel import run_splits
from tests.processes import is_running
from tests.spark.scripted_table import ScriptedTable
from tests.waiting import until

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False),), ("id",))

DRIVER = """
import os, time
from spark_jobs.runtime.process_pool import process_pool

if __name__ == "__main__":
    processes = process_pool(1)
    print(processes.submit(os.getpid).result(), flush=True)
    processes.submit(time.sleep, 900).result()
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """With two cores in Spark's configuration, and without a Spark session."""
    return ScriptedTable(None, tmp_path, SCHEMA).job(StepKind.SNAPSHOT, ())  # type: ignore[arg-type]


def test_a_single_split_runs_in_this_process_and_several_in_others_in_order(job: Job) -> None:
    assert run_splits(job, abs, []) == []
    assert run_splits(job, os.getpgid, [0]) == [os.getpgid(0)]
    assert run_splits(job, abs, [-3, 2, -1]) == [3, 2, 1]
    assert os.getpid() not in run_splits(job, eval, ["__import__('os').getpid()"] * 3)


def test_a_killed_process_fails_the_attempt_with_a_message(job: Job) -> None:
    with pytest.raises(SourceUnavailable, match="JOB007"):
        run_splits(job, os._exit, [1, 1])


def test_processes_end_with_a_killed_driver(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as driver:
        assert driver.stdout is not None
        child = int(driver.stdout.readline())
        assert is_running(child)
        driver.send_signal(signal.SIGKILL)
    until(lambda: not is_running(child), "the end of a child whose driver is gone")
