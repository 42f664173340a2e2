"""The programs of the tests print help instead of starting."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NO_SUCH_CASE = {
    "ONLY": "no-such-case",
    "PYTHONPATH": os.pathsep.join((str(REPOSITORY), f"{REPOSITORY}/tests/failpoints")),
}
"""A program that starts all the same has nothing to do."""


@pytest.mark.parametrize("module", ["faults", "mutants", "properties", "run_layers"])
def test_help_is_printed_and_nothing_is_started(module: str) -> None:
    command = [sys.executable, "-m", f"tests.{module}", "--help"]
    done = subprocess.run(command, cwd=REPOSITORY, env=os.environ | NO_SUCH_CASE, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:6]) == (0, "usage:"), done.stdout[-1000:] + done.stderr[-1000:]


def test_the_makefile_sets_the_path_of_the_benchmarks() -> None:
    """``ONLY`` is on the command line."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = ["make", "bench", "ONLY=--help"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "usage:" in done.stdout, done.stdout[-1000:] + done.stderr[-1000:]
