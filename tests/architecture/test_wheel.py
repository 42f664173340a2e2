"""The wheel carries everything that a machine without the checkout needs."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from airflow_cdc_provider import __version__
from airflow_cdc_provider.logstore import STORES

REPOSITORY = Path(__file__).parents[2]
METADATA = f"airflow_cdc_provider-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_it_holds_every_module_of_the_package_and_of_the_jobs(wheel: zipfile.ZipFile) -> None:
    sources = {
        str(path.relative_to(REPOSITORY))
        for folder in ("airflow_cdc_provider", "spark_jobs")
        for path in (REPOSITORY / folder).rglob("*.py")
    }
    assert "spark_jobs/__init__.py" in sources
    assert sources - set(wheel.namelist()) == set()


def test_it_holds_nothing_else_of_the_repository(wheel: zipfile.ZipFile) -> None:
    assert {name.partition("/")[0] for name in wheel.namelist()} == {"airflow_cdc_provider", "spark_jobs", METADATA}


@pytest.mark.parametrize("lock", ["airflow_cdc_provider/jars.lock.json", "airflow_cdc_provider/sandbox/jars.lock.json"])
def test_it_holds_the_locks_of_the_jars(wheel: zipfile.ZipFile, lock: str) -> None:
    assert wheel.read(lock) == (REPOSITORY / lock).read_bytes()


def test_it_holds_the_sources_of_the_log_stores(wheel: zipfile.ZipFile) -> None:
    for name in STORES:
        assert f"class {name}".encode() in wheel.read(f"airflow_cdc_provider/logstore/{name}.java")


def test_airflow_finds_what_its_entry_points_name(wheel: zipfile.ZipFile) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(wheel.read(f"{METADATA}/entry_points.txt").decode())
    points = {value for section in parser.sections() for value in parser[section].values()}
    assert "airflow_cdc_provider.get_provider_info:get_provider_info" in points
    for point in points:
        module, _, attribute = point.partition(":")
        source = wheel.read(f"{module.replace('.', '/')}.py").decode()
        assert f"def {attribute}(" in source or f"class {attribute}(" in source
