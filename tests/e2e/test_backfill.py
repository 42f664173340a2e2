"""Airflow's own backfill over an interval repairs rows that somebody damaged, beside the schedule."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.scenario import Scenario

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TABLES = """\
tables:
  - source: public.customers
"""
RUNS_LIMIT_S = 240


def test_a_backfill_repairs_what_was_damaged_beside_the_schedule(scenario: Callable[..., Scenario]) -> None:
    repaired = scenario("repaired", tables=TABLES, more='schedule: "* * * * *"\n')
    wait_until(lambda: DeltaTable.is_deltatable(str(repaired.lake / "customers")))
    wait_until(lambda: datetime.now(UTC).second < 50)
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    repaired.execute("update customers set name = 'Ada' where id = 7")
    repaired.start()
    wait_until(lambda: name_of(repaired, 7) == "Ada")

    table(repaired).update(updates={"name": "'broken'"}, predicate="id = 7")
    assert name_of(repaired, 7) == "broken"
    wait_until(lambda: datetime.now(UTC) > minute + timedelta(seconds=65))
    dates = ["--from-date", minute.isoformat(), "--to-date", minute.isoformat()]
    repaired.airflow.cli("backfill", "create", "--dag-id", "repaired", *dates, "--reprocess-behavior", "completed")
    (run,) = backfills(repaired)
    assert repaired.finish(run)["run"] == "success", repaired.story(run)

    assert name_of(repaired, 7) == "Ada"
    repaired.airflow.request("PATCH", "/dags/repaired", json={"is_paused": True})


def table(scenario: Scenario) -> DeltaTable:
    return DeltaTable(scenario.lake / "customers")


def name_of(scenario: Scenario, key: int) -> Any:
    query = f"select name from customers where id = {key}"
    answer = QueryBuilder().register("customers", table(scenario)).execute(query).read_all()
    (row,) = pyarrow.table(answer).to_pylist()
    return row["name"]


def backfills(scenario: Scenario) -> list[str]:
    """Run ids, once there are any."""

    def found() -> list[str]:
        runs = scenario.airflow.request("GET", f"/dags/{scenario.name}/dagRuns", params={"run_type": "backfill"})
        return [run["dag_run_id"] for run in runs["dag_runs"]]

    wait_until(found)
    return found()


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + RUNS_LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.5)
