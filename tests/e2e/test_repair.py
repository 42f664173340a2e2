"""Airflow's own backfill over an interval repairs what somebody damaged, beside the schedule.

The interval has to pass before: the other tests of the layer go on meanwhile.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.damage import Damaged
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_a_backfill_repairs_what_was_damaged_beside_the_schedule(damaged: Damaged) -> None:
    repaired, minute = damaged.scenario, damaged.minute
    assert damaged.name == "broken"
    damaged.pause(False)
    until(lambda: datetime.now(UTC) > minute + timedelta(seconds=65), "the end of the minute", every_s=0.5)
    until(lambda: not in_flight(damaged), "the end of the schedule's own run", every_s=0.5)
    # Paused again: with SQLite under Airflow a scheduler at work and this command may lock each other out.
    damaged.pause(True)
    dates = ["--from-date", minute.isoformat(), "--to-date", minute.isoformat()]
    repaired.airflow.cli("backfill", "create", "--dag-id", "repaired", *dates, "--reprocess-behavior", "completed")
    repaired.execute("update customers set name = 'Bea' where id = 8")
    beside = repaired.start()
    damaged.pause(False)
    until(lambda: backfills(damaged), "the run of the backfill", every_s=0.5)
    (run,) = backfills(damaged)
    assert repaired.finish(run)["run"] == "success", repaired.failed_logs(run)
    assert repaired.finish(beside)["run"] == "success", repaired.failed_logs(beside)
    assert damaged.name == "Ada"
    damaged.pause(True)


def backfills(damaged: Damaged) -> list[str]:
    """Run ids."""
    runs = damaged.scenario.airflow.request("GET", "/dags/repaired/dagRuns", params={"run_type": "backfill"})
    return [run["dag_run_id"] for run in runs["dag_runs"]]


def in_flight(damaged: Damaged) -> int:
    """Airflow leaves out intervals whose run has not ended."""
    runs = damaged.scenario.airflow.request("GET", "/dags/repaired/dagRuns", params={"order_by": "-id", "limit": "20"})
    return sum(run["state"] in ("queued", "running") for run in runs["dag_runs"])
