"""Modules of executors and drivers can be imported without Airflow and without the libraries of the loader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import importlib, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"airflow", "pydantic", "yaml"}:
            raise ImportError(f"{name} does not exist on an executor")

sys.meta_path.insert(0, Refuse())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def modules(folder: str) -> list[str]:
    found = []
    for path in sorted((REPOSITORY / folder).rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def import_them(names: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, *names], cwd=REPOSITORY, capture_output=True, text=True)


@pytest.mark.parametrize(
    "folder",
    [
        "airflow_cdc_provider/core",
        "airflow_cdc_provider/staging",
        "airflow_cdc_provider/connectors",
        "airflow_cdc_provider/targets",
        "spark_jobs",
    ],
)
def test_modules_can_be_imported_without_airflow_pydantic_and_yaml(folder: str) -> None:
    names = modules(folder)
    assert names
    done = import_them(names)
    assert done.returncode == 0, done.stderr


EACH_FIRST = """
import importlib, sys

for name in sys.argv[1:]:
    for loaded in [one for one in sys.modules if one.partition(".")[0] in {"airflow_cdc_provider", "spark_jobs"}]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        sys.exit(f"{name}: {error}")
"""


@pytest.mark.nightly
def test_each_module_of_the_jobs_can_be_imported_first() -> None:
    """A task of Spark imports the module of its function first."""
    command = [sys.executable, "-c", EACH_FIRST, *modules("spark_jobs")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["airflow", "pydantic", "yaml"])
def test_the_imports_are_refused(name: str) -> None:
    assert f"{name} does not exist on an executor" in import_them([name]).stderr
