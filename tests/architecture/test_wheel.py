"""The wheels contain everything that a machine without the checkout needs; the sandbox is a wheel of its own."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from airflow_cdc_provider import __version__
from airflow_cdc_provider.logstore import CLASSES

REPOSITORY = Path(__file__).parents[2]
METADATA = f"airflow_cdc_provider-{__version__}.dist-info"


SANDBOX = "airflow_cdc_provider/sandbox"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return built(REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return built(REPOSITORY / SANDBOX, tmp_path_factory.mktemp("sandbox"))


def built(project: Path, folder: Path) -> zipfile.ZipFile:
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(project)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


def test_each_module_is_in_one_of_the_two_wheels(wheel: zipfile.ZipFile, sandbox: zipfile.ZipFile) -> None:
    sources = {
        str(path.relative_to(REPOSITORY))
        for folder in ("airflow_cdc_provider", "spark_jobs")
        for path in (REPOSITORY / folder).rglob("*.py")
    }
    of_sandbox = {name for name in sources if name.startswith(f"{SANDBOX}/")}
    assert "spark_jobs/__init__.py" in sources and f"{SANDBOX}/postgres.py" in of_sandbox
    assert sources - set(wheel.namelist()) == of_sandbox
    assert of_sandbox - set(sandbox.namelist()) == set()


def test_the_wheel_contains_nothing_else_of_the_repository(wheel: zipfile.ZipFile) -> None:
    assert {name.partition("/")[0] for name in wheel.namelist()} == {"airflow_cdc_provider", "spark_jobs", METADATA}


def test_the_wheels_contain_the_locks_of_the_jars(wheel: zipfile.ZipFile, sandbox: zipfile.ZipFile) -> None:
    for one, lock in ((wheel, "airflow_cdc_provider/jars.lock.json"), (sandbox, f"{SANDBOX}/jars.lock.json")):
        assert one.read(lock) == (REPOSITORY / lock).read_bytes()


def test_the_wheel_contains_the_sources_of_the_log_stores(wheel: zipfile.ZipFile) -> None:
    for name in CLASSES:
        assert f"class {name}".encode() in wheel.read(f"airflow_cdc_provider/logstore/{name}.java")


def test_the_entry_points_name_existing_functions_and_classes(wheel: zipfile.ZipFile) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(wheel.read(f"{METADATA}/entry_points.txt").decode())
    points = {value for section in parser.sections() for value in parser[section].values()}
    assert "airflow_cdc_provider.get_provider_info:get_provider_info" in points
    for point in points:
        module, _, attribute = point.partition(":")
        source = wheel.read(f"{module.replace('.', '/')}.py").decode()
        assert f"def {attribute}(" in source or f"class {attribute}(" in source
