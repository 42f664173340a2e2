"""Fixtures for end-to-end tests: a PostgreSQL, an Airflow, and replicators on them. Shared by two layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.scenario import Scenario

SPARK = {"conn_type": "spark", "host": "local[2]"}


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def airflow(interpreter: str, home: Path) -> Iterator[EmbeddedAirflow]:
    """``interpreter``: a fixture of the layer, the Python that runs Airflow and the jobs."""
    with (
        EmbeddedPostgres() as metadata,
        EmbeddedAirflow(home / "airflow", metadata.dsn(), {"spark_default": SPARK}, python=interpreter) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def scenario(server: EmbeddedPostgres, airflow: EmbeddedAirflow, home: Path) -> Callable[..., Scenario]:
    """Creates a replicator: ``scenario("shop", …)``."""

    def make(name: str, **options: Any) -> Scenario:
        return Scenario(name, server, airflow, home, **options)

    return make
