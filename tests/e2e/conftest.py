"""This layer runs what users install: the wheel, in a clean environment outside the checkout."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.whole_road import airflow, home, scenario, server

__all__ = ["airflow", "home", "interpreter", "scenario", "server"]

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all workers of the layer: the first makes it, the others wait."""
    folder = tmp_path_factory.getbasetemp() / "installed"
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parents[1] / folder.name
    folder.mkdir(exist_ok=True)
    python, whole = folder / "venv" / "bin" / "python", folder / "whole"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            install(folder, python)
            whole.touch()
    return str(python)


def install(folder: Path, python: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, CHECKOUT)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, folder / "venv")
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    run(*uv, "--constraint", CHECKOUT / "constraints.txt", f"{wheel}[postgres,delta,sandbox]")


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
