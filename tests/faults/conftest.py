"""This layer breaks things: in a rig of its own, and on a real Airflow that runs the checkout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults.killing import end_schedulers
from tests.faults.performing import Theatre
from tests.faults.stage import MANY, session, theatre
from tests.model import seeds
from tests.whole_road import airflow, home, scenario, server

__all__ = ["airflow", "home", "interpreter", "scenario", "server"]

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m"
SOCKETS = "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the sockets of its threads to the garbage collector."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings(SOCKETS))


@pytest.fixture(scope="session")
def interpreter() -> Iterator[str]:
    """Its Airflow soon misses a scheduler that was killed; those started in the place of one are ended here."""
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
def stage(spark: SparkSession, seed: int) -> Iterator[Theatre]:
    """MariaDB where it is installed; in CI it must be."""
    with EmbeddedPostgres(MANY) as postgres:
        try:
            mariadb = EmbeddedMariaDB()
        except NotInstalled:
            if os.environ.get("CI"):
                raise
            with theatre(postgres, None, seed) as made:
                yield made
            return
        with mariadb, theatre(postgres, mariadb, seed) as made:
            yield made
