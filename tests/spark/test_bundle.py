"""The zip for Spark contains everything that jobs import, and nothing of Airflow."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from airflow_cdc_provider import bundle

ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
import airflow_cdc_provider
assert airflow_cdc_provider.__file__.startswith(sys.argv[1]), airflow_cdc_provider.__file__
from spark_jobs import extract, merge, resync, snapshot, stage
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.targets.delta.target import DeltaTarget
assert "airflow" not in sys.modules
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_jobs_run_from_the_zip_alone(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ALONE, str(bundle.build())], cwd=tmp_path, check=True)


def test_the_zip_is_built_once_and_leaves_no_rest(cache: Path) -> None:
    first = bundle.build()
    made = first.stat().st_mtime_ns
    assert bundle.build() == first
    assert first.stat().st_mtime_ns == made
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_the_zip_contains_the_packages_of_jobs_alone() -> None:
    packages = {"/".join(name.split("/")[:2]) for name in zipfile.ZipFile(bundle.build()).namelist()}
    of_provider = {package for package in packages if package.startswith("airflow_cdc_provider/")}
    assert of_provider == {f"airflow_cdc_provider/{package}" for package in (*bundle.PACKAGES, "__init__.py")}
