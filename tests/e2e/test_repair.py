"""A backfill of Airflow over an interval repairs a corrupted row, beside the schedule.

The interval has to pass first: the other tests of the layer run in the meantime.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.corrupted_copy import CorruptedCopy
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]


def test_a_backfill_beside_the_schedule_repairs_a_corrupted_row(corrupted: CorruptedCopy) -> None:
    repaired, minute = corrupted.scenario, corrupted.minute
    assert corrupted.name == "broken"
    corrupted.pause(False)
    until(lambda: datetime.now(UTC) > minute + timedelta(seconds=65), "the end of the minute", every_s=0.5)
    until(lambda: not in_flight(corrupted), "the end of the schedule's own run", every_s=0.5)
    dates = ["--from-date", minute.isoformat(), "--to-date", minute.isoformat()]
    repaired.airflow.cli("backfill", "create", "--dag-id", "repaired", *dates, "--reprocess-behavior", "completed")
    repaired.execute("update customers set name = 'Bea' where id = 8")
    beside = repaired.start()
    until(lambda: backfills(corrupted), "the run of the backfill", every_s=0.5)
    (run,) = backfills(corrupted)
    assert repaired.finish(run)["run"] == "success", repaired.failed_logs(run)
    assert repaired.finish(beside)["run"] == "success", repaired.failed_logs(beside)
    assert corrupted.name == "Ada"
    corrupted.pause(True)


def backfills(corrupted: CorruptedCopy) -> list[str]:
    """Run ids."""
    runs = corrupted.scenario.airflow.request("GET", "/dags/repaired/dagRuns", params={"run_type": "backfill"})
    return [run["dag_run_id"] for run in runs["dag_runs"]]


def in_flight(corrupted: CorruptedCopy) -> int:
    """Airflow skips intervals whose run has not ended."""
    runs = corrupted.scenario.airflow.request(
        "GET", "/dags/repaired/dagRuns", params={"order_by": "-id", "limit": "20"}
    )
    return sum(run["state"] in ("queued", "running") for run in runs["dag_runs"])
