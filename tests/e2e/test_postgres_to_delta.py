"""One replicator from PostgreSQL to Delta, installed from the wheel, run by a real scheduler.

The tests follow the life of a replicator. The comparison at the end checks all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from deltalake import DeltaTable

from tests.e2e import page_journey
from tests.scenario import Scenario
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server]

WAITING = """\
from pathlib import Path

from airflow.sdk import DAG

from airflow_cdc_provider.factory import definition_of
from airflow_cdc_provider.sensors.changes import ChangesAvailableSensor

with DAG("waiting", schedule=None):
    shop = definition_of(Path(__file__).parent / "replicators" / "shop.yaml")
    ChangesAvailableSensor(task_id="changes", definition=shop, deferrable=True, poke_interval=2)
"""


@pytest.fixture(scope="module")
def shop(scenario: Callable[..., Scenario]) -> Scenario:
    return scenario("shop")


def test_the_first_run_copies_and_later_runs_apply_changes(shop: Scenario) -> None:
    first = shop.must_tick()
    assert first["snapshot"] == "success"

    shop.load.run(40)
    shop.load.truncate()
    shop.load.add_column("channel")
    with shop.load:
        second = shop.must_tick()
        shop.verify()
    assert (second["snapshot"], second["extract"], second["merge"]) == ("skipped", "success", "success")


@pytest.mark.nightly
def test_two_manual_runs_apply_no_change_twice(shop: Scenario) -> None:
    shop.load.run(20)
    runs = [shop.start(), shop.start()]
    assert [shop.finish(run)["run"] for run in runs] == ["success", "success"]


def test_a_run_without_new_changes_starts_no_spark(shop: Scenario) -> None:
    shop.must_tick()  # applies what the comparison left
    idle = shop.must_tick()
    ran = {task for task, state in idle.items() if state == "success"}
    assert ran == {"run", "open_window", "close_window"}


def test_an_operator_sees_the_copies_on_the_page_and_pauses_and_resumes_one(shop: Scenario) -> None:
    page_journey.walk(shop)


def test_a_sensor_waits_in_the_triggerer_until_something_changes(shop: Scenario) -> None:
    waiting = shop.airflow.dags / "waiting.py"
    waiting.write_text(WAITING)
    shop.airflow.wait_for_dag("waiting")
    run = shop.airflow.trigger("waiting")
    until(lambda: shop.airflow.tasks("waiting", run) == {"changes": "deferred"}, "a deferred sensor", every_s=0.5)
    shop.load.run(20)
    assert shop.airflow.wait("waiting", run) == "success"
    waiting.unlink()


@pytest.mark.nightly
def test_a_paused_table_takes_no_commit_until_it_is_resumed(shop: Scenario) -> None:
    shop.cdc("pause", "shop", "--table", "public.orders")
    before = DeltaTable(shop.lake / "orders").version()
    shop.load.run(20)
    shop.must_tick()
    assert DeltaTable(shop.lake / "orders").version() == before
    rows = {row["table"]: row["state"] for row in shop.cdc("status", "shop")["tables"]}
    assert (rows["public.orders"], rows["public.customers"]) == ("paused", "replicating")
    shop.cdc("resume", "shop", "--table", "public.orders")
    shop.must_tick()
    assert DeltaTable(shop.lake / "orders").version() > before + 1, "the fence of the resume, and the changes"


@pytest.mark.nightly
def test_after_a_resync_beside_the_stream_source_and_target_are_identical(shop: Scenario) -> None:
    shop.cdc("resync", "shop", "--table", "public.order_lines")
    with shop.load:
        states = shop.must_tick()
    assert states["reconcile.resync"] == "success"
    shop.verify()


@pytest.mark.nightly
def test_a_deleted_replicator_ends_its_runs_and_leaves_nothing(shop: Scenario) -> None:
    shop.cdc("resync", "shop")
    run = shop.start()
    until(lambda: "running" in shop.airflow.tasks("shop", run).values(), "a running task")
    assert shop.cdc("delete", "shop", "--drop-copies", "--yes", "shop")["deleted"]
    assert shop.finish(run)["run"] == "failed"
    assert not (shop.staging / "shop").exists() and list(shop.lake.glob("*/_delta_log")) == []
    with psycopg.connect(shop.dsn) as connection:
        query = "SELECT slot_name FROM pg_replication_slots WHERE slot_name ~ '^cdc_' AND database = 'shop'"
        assert connection.execute(query).fetchall() == []
    refused = shop.start()
    assert shop.finish(refused)["open_window"] == "failed"
    assert "CMD020 the replicator shop was deleted" in shop.failed_logs(refused)
    assert not (shop.staging / "shop").exists()
