"""This layer injects faults: into a replicator without Airflow, and on a real Airflow that runs the checkout."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.airflow_fixtures import airflow, home, scenario, server
from tests.faults.environment import SERVER_SETTINGS, fault_runner, session
from tests.faults.killing import end_schedulers
from tests.faults.runner import FaultRunner
from tests.faults.servers import Servers
from tests.model import seeds

__all__ = ["airflow", "home", "interpreter", "scenario", "server"]

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m"
SOCKETS = "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the sockets of its threads to the garbage collector."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings(SOCKETS))


@pytest.fixture(scope="session")
def interpreter() -> Iterator[str]:
    """Its Airflow detects a killed scheduler soon; replacement schedulers are ended here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL", "10")
        patch.setenv("AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD", "25")
        yield sys.executable
    end_schedulers()


@pytest.fixture(scope="session")
def seed() -> int:
    return int(seeds.seed())


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session(QUICK)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def runner(spark: SparkSession, seed: int) -> Iterator[FaultRunner]:
    with (
        EmbeddedPostgres(SERVER_SETTINGS) as postgres,
        Servers(postgres) as servers,
        fault_runner(servers, seed) as made,
    ):
        yield made
