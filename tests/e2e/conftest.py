"""This layer runs the installed product: the wheel, in a clean environment outside the checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.airflow_fixtures import airflow, home, scenario, server
from tests.e2e.corrupted_copy import CorruptedCopy, corrupt_copy
from tests.scenario import Scenario

__all__ = ["airflow", "home", "interpreter", "scenario", "server"]

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheels of both distributions."""
    folder = tmp_path_factory.mktemp("wheels")
    for distribution in (CHECKOUT, CHECKOUT / "airflow_cdc_provider" / "sandbox"):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, distribution)
    return folder


@pytest.fixture(scope="session")
def interpreter(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return install(wheels, tmp_path_factory.mktemp("installed"))


def install(wheels: Path, folder: Path, *more: str) -> str:
    """A clean environment with the provider and ``more`` packages. Returns its Python."""
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, folder / "venv")
    python = str(folder / "venv" / "bin" / "python")
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    command += [
        "--constraint",
        str(CHECKOUT / "constraints.txt"),
        "airflow-cdc-provider[postgres,delta,sandbox]",
        *more,
    ]
    command += ["--find-links", str(wheels)]
    # The packages of the environment of the checkout are in the cache.
    if subprocess.run([*command, "--offline"], cwd="/", capture_output=True, check=False).returncode != 0:
        run(*command)
    return python


@pytest.fixture(scope="session")
def corrupted(scenario: Callable[..., Scenario]) -> CorruptedCopy:
    return corrupt_copy(scenario)


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
