"""Shares are done by this process where one is alone, by other processes of this machine where there are several."""

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
from tests.spark.scripted_table import ScriptedTable
from tests.waiting import until

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False),), ("id",))

LEFT_ALONE = """
import os, time
from spark_jobs.runtime.process_pool import process_pool

if __name__ == "__main__":
    processes = process_pool(1)
    print(processes.submit(os.getpid).result(), flush=True)
    processes.submit(time.sleep, 900).result()
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Where Spark would have two cores of this machine. No session: nothing here asks for one."""
    return ScriptedTable(None, tmp_path, SCHEMA).job(StepKind.SNAPSHOT, ())  # type: ignore[arg-type]


def test_a_share_that_is_alone_stays_here_and_several_go_to_others_in_their_order(job: Job) -> None:
    assert run_splits(job, abs, []) == []
    assert run_splits(job, os.getpgid, [0]) == [os.getpgid(0)]
    assert run_splits(job, abs, [-3, 2, -1]) == [3, 2, 1]
    assert os.getpid() not in run_splits(job, eval, ["__import__('os').getpid()"] * 3)


def test_a_process_that_is_ended_fails_the_attempt_in_words(job: Job) -> None:
    with pytest.raises(SourceUnavailable, match="JOB007"):
        run_splits(job, os._exit, [1, 1])


def test_processes_end_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "left_alone.py"
    script.write_text(LEFT_ALONE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as driver:
        assert driver.stdout is not None
        child = int(driver.stdout.readline())
        assert _is_there(child)
        driver.send_signal(signal.SIGKILL)
    until(lambda: not _is_there(child), "the end of a child whose driver is gone")


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
