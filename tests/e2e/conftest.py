"""This layer runs what users install: the wheel, in a clean environment outside the checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.damage import Damaged, damage
from tests.scenario import Scenario
from tests.whole_road import airflow, home, scenario, server

__all__ = ["airflow", "home", "interpreter", "scenario", "server"]

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("installed")
    for distribution in (CHECKOUT, CHECKOUT / "airflow_cdc_provider" / "sandbox"):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, distribution)
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, folder / "venv")
    python = str(folder / "venv" / "bin" / "python")
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    install += ["--constraint", str(CHECKOUT / "constraints.txt"), "airflow-cdc-provider[postgres,delta,sandbox]"]
    install += ["--find-links", str(folder)]
    # Whatever the checkout's own environment was made of is at hand.
    if subprocess.run([*install, "--offline"], cwd="/", capture_output=True, check=False).returncode != 0:
        run(*install)
    return python


@pytest.fixture(scope="session")
def damaged(scenario: Callable[..., Scenario]) -> Damaged:
    return damage(scenario)


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
