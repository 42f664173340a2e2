"""Backfills of Airflow copy months of a table that began without rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from deltalake import DeltaTable

from tests.delta_tables import read
from tests.scenario import Scenario
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

TABLES = """\
tables:
  - source: public.orders
    snapshot: {mode: schema_only, slices: {column: placed_at, every: month}}
"""
MOVE = "update orders set placed_at = timestamptz '2025-01-15 00:00+00' + (id % 4) * interval '1 month'"


def test_a_backfill_copies_the_months_of_its_interval(scenario: Callable[..., Scenario]) -> None:
    sliced = scenario("sliced", tables=TABLES, more='schedule: "0 0 1 * *"\n')
    sliced.execute(MOVE)
    sliced.must_tick()
    until(lambda: DeltaTable.is_deltatable(str(sliced.lake / "orders")), "the copy without rows", every_s=0.5)
    assert months(sliced) == {}
    backfill(sliced, "2025-02-01", "2025-02-01")
    assert months(sliced) == {2: at_source(sliced)[2]}
    sliced.execute("update orders set total = 7 where extract(month from placed_at) = 2")
    backfill(sliced, "2025-03-01", "2025-04-01")
    assert months(sliced) == {month: at_source(sliced)[month] for month in (2, 3, 4)}
    backfill(sliced, "2025-01-01", "2025-04-01")
    sliced.must_tick()
    sliced.verify()


def backfill(sliced: Scenario, first: str, last: str) -> None:
    dates = ["--from-date", first, "--to-date", last]
    before = runs(sliced)
    sliced.airflow.cli("backfill", "create", "--dag-id", sliced.name, *dates)
    until(lambda: set(runs(sliced)) - set(before), "the runs of the backfill", every_s=0.5)
    for run in set(runs(sliced)) - set(before):
        assert sliced.finish(run)["run"] == "success", sliced.failed_logs(run)


def runs(sliced: Scenario) -> list[str]:
    """Ids of those of backfills."""
    query = {"run_type": "backfill", "limit": "200"}
    found = sliced.airflow.request("GET", f"/dags/{sliced.name}/dagRuns", params=query)
    return [run["dag_run_id"] for run in found["dag_runs"]]


def months(sliced: Scenario) -> Counter[int]:
    """The rows of the copy, by month."""
    times = read(DeltaTable(sliced.lake / "orders"), "placed_at").to_pydict()["placed_at"]
    return Counter(time.astimezone(UTC).month for time in times)


def at_source(sliced: Scenario) -> Counter[int]:
    with psycopg.connect(sliced.dsn) as connection:
        times: list[tuple[datetime]] = connection.execute("select placed_at from orders").fetchall()
    return Counter(time.astimezone(UTC).month for (time,) in times)
