from __future__ import annotations

import atexit
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

# Airflow reads its home when it is first imported, which is when test modules are collected.
HOME = tempfile.mkdtemp(prefix="cdc-airflow-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ |= {
    "AIRFLOW_HOME": HOME,
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
}

FAKE_SPARK_SUBMIT = Path(__file__).with_name("fake_spark_submit.py")


@pytest.fixture
def fake_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ``bin`` folder of an environment with a fake spark-submit, used by this process."""
    folder = tmp_path / "bin"
    folder.mkdir()
    programs = {
        "spark-submit": f'exec {sys.executable} {FAKE_SPARK_SUBMIT} "$@"',
        "python": f'exec {sys.executable} "$@"',
    }
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("FAKE_PYTHON", str(folder / "python"))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test that cannot contain a class-data archive: no process would use it, and its creation needs a
    Java process."""
    cache = tmp_path / "cache/airflow-cdc-provider"
    cache.mkdir(parents=True)
    (cache / "appcds").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections of ``StepHarness``, as Airflow finds them in its environment."""
    from tests.provider.step_harness import CONNECTIONS

    for name, fields in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))


@pytest.fixture(scope="session")
def metadata_database() -> None:
    """The tables of Airflow's own database, in the home of this process."""
    from tests.provider.api_client import migrate_database

    migrate_database()


@pytest.fixture
def cdc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    from tests.provider.command_line import command_line

    monkeypatch.delenv("COLUMNS", raising=False)

    return command_line(tmp_path, monkeypatch, capsys)


@pytest.fixture
def harness(tmp_path: Path) -> Any:
    """A replicator of two tables whose state store is the one the command line finds."""
    from tests.provider.command_line import run_harness

    return run_harness(tmp_path)
