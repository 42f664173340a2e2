"""The runner of the layers: what it counts, and that it does not wait for ever."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests import run_layers
from tests.run_layers import Outcome


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of tests with one layer, ``quick``."""
    (tmp_path / "tests" / "quick").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setitem(run_layers.BUDGETS_S, "quick", 60)
    return tmp_path / "tests"


def test_a_layer_is_counted(tests: Path) -> None:
    (tests / "quick" / "test_some.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 0\n"
        "def test_left_out(): pytest.skip()\n"
        "def test_broken(nothing): pass\n"
    )
    outcome = run_layers.run("quick", tests)
    assert outcome.failed and not outcome.late
    assert outcome.counts == {"passed": 1, "failed": 1, "skipped": 1, "errors": 1}


def test_a_layer_inside_of_another_is_counted_once(tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run_layers.BUDGETS_S, "quick/inner", 60)
    (tests / "quick" / "inner").mkdir()
    for folder in ("quick", "quick/inner"):
        (tests / folder / "test_some.py").write_text("def test_good(): pass\n")
    (tests / "quick" / "__init__.py").touch()
    (tests / "quick" / "inner" / "__init__.py").touch()
    assert [run_layers.run(layer, tests).counts["passed"] for layer in ("quick", "quick/inner")] == [1, 1]


SERVED = """
import subprocess, sys, time
import pytest

@pytest.fixture(scope="session")
def server():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{mark}"], start_new_session=True)
    yield
    process.kill()
    process.wait()

def test_endless(server):
    time.sleep(600)
"""


def test_a_layer_past_its_budget_is_stopped_with_its_servers_and_has_failed(
    tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(run_layers.BUDGETS_S, "quick", 8)
    mark = f"server-{uuid4()}"
    (tests / "quick" / "test_some.py").write_text(SERVED.format(mark=mark))
    outcome = run_layers.run("quick", tests)
    assert outcome.late and outcome.failed
    assert outcome.took_s < 60
    assert "too slow" in run_layers.table([outcome])
    assert not [process.info for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or ())]


def test_the_closing_line_is_written_as_pytest_writes_it() -> None:
    outcomes = [
        Outcome("core", 0, 2.0, {"passed": 40, "failed": 0, "skipped": 1, "errors": 0}),
        Outcome("spark", 1, 3.5, {"passed": 1, "failed": 2, "skipped": 0, "errors": 0}),
    ]
    assert run_layers.closing_line(outcomes).strip("= ") == "2 failed, 41 passed, 1 skipped in 5.50s"


def test_a_layer_that_was_cut_short_is_never_a_pass() -> None:
    outcomes = [Outcome("core", -9, 2.0, {})]
    assert run_layers.closing_line(outcomes).strip("= ") == "1 errors in 2.00s"
