"""The wheel in a clean environment, a real PostgreSQL and a real Airflow, shared by the tests of this layer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.scenario import Scenario

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment outside the checkout that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("installed")
    folder.parent.chmod(0o755)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, CHECKOUT)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, folder / "venv")
    python = str(folder / "venv" / "bin" / "python")
    constraints = CHECKOUT / "constraints.txt"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, "-c", constraints]
    run(*install, f"{wheel}[postgres,delta,sandbox]")
    return python


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def airflow(installed: str, home: Path) -> Iterator[EmbeddedAirflow]:
    spark = {"conn_type": "spark", "host": "local[2]"}
    with EmbeddedAirflow(home / "airflow", {"spark_default": spark}, python=installed) as running:
        yield running


@pytest.fixture(scope="session")
def scenario(server: EmbeddedPostgres, airflow: EmbeddedAirflow, home: Path) -> Callable[..., Scenario]:
    """Make a replicator: ``scenario("shop", …)``."""

    def make(name: str, **options: object) -> Scenario:
        return Scenario(name, server, airflow, home, **options)  # type: ignore[arg-type]

    return make
