"""The runner of the layers: its counts and its output, and tests that hang."""

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
    monkeypatch.setattr(run_layers, "ALONE", {"quick", "quick/inner"})
    monkeypatch.setattr(run_layers, "CONCURRENT", {"quick", "quick/inner"})
    return tmp_path / "tests"


def test_a_layer_is_counted(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
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
    bad, broken = run_layers.failure_lines([outcome])
    assert "test_some::test_bad: " in bad and "test_some::test_broken: " in broken
    assert "0 s     4  " in next(line for line in capfd.readouterr().out.splitlines() if line.endswith("test_some"))


@pytest.mark.parametrize("in_memory", [True, False])
def test_temporary_files_of_a_layer_are_in_memory_if_there_is_space_and_are_removed(
    tests: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    memory = tmp_path_factory.mktemp("memory")
    monkeypatch.setattr(run_layers, "MEMORY", memory)
    monkeypatch.setattr(run_layers, "NEEDED_BYTES", 1 if in_memory else 1 << 62)
    (tests / "quick" / "test_some.py").write_text(
        f"def test_good(tmp_path): assert (str(tmp_path).startswith({str(memory)!r})) == {in_memory}\n"
    )
    assert run_layers.run("quick", tests).counts["passed"] == 1
    assert list(memory.iterdir()) == []


def test_a_nested_layer_is_counted_once(tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run_layers.BUDGETS_S, "quick/inner", 60)
    (tests / "quick" / "inner").mkdir()
    for folder in ("quick", "quick/inner"):
        (tests / folder / "test_some.py").write_text("def test_good(): pass\n")
    (tests / "quick" / "__init__.py").touch()
    (tests / "quick" / "inner" / "__init__.py").touch()
    assert [run_layers.run(layer, tests).counts["passed"] for layer in ("quick", "quick/inner")] == [1, 1]


def test_layers_with_an_airflow_run_concurrently_at_the_end_and_their_outputs_are_not_mixed(
    tests: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_layers.in_turn(["quick", "core", "quick/inner"]) == [["core"], ["quick", "quick/inner"]]
    monkeypatch.setitem(run_layers.BUDGETS_S, "other", 60)
    (tests / "other").mkdir()
    meeting = "import time, pathlib\ndef test_meets():\n    pathlib.Path('{0}').touch()\n    end = time.time() + 30\n"
    meeting += (
        "    while not pathlib.Path('{1}').exists():\n        assert time.time() < end\n        time.sleep(0.1)\n"
    )
    files = {"quick": (tests / "a", tests / "b"), "other": (tests / "b", tests / "a")}
    for layer, (mine, theirs) in files.items():
        (tests / layer / "test_some.py").write_text(meeting.format(mine, theirs))
    outcomes = run_layers.run_at_once(list(files), tests)
    assert [(one.layer, one.failed, one.counts["passed"]) for one in outcomes] == [
        ("quick", False, 1),
        ("other", False, 1),
    ]
    assert capfd.readouterr().out.count("1 passed") == 2


def test_a_layer_over_its_budget_is_reported_and_has_not_failed() -> None:
    outcomes = [Outcome("core", 0, 300.0, {"passed": 1}), Outcome("spark", 0, 100.0, {"passed": 1})]
    assert not any(outcome.failed for outcome in outcomes)
    _, core, spark, whole = run_layers.table(outcomes, 400.0).splitlines()
    assert core.split()[:3] == ["core", "300", "75%"] and core.endswith("over its budget")
    assert spark.split()[:3] == ["spark", "100", "25%"] and "over" not in spark
    assert whole.split() == ["all", "400", "100%", "700"]


HANGING = """
import subprocess, sys, time
import pytest

@pytest.fixture(scope="module")
def server():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{mark}"], start_new_session=True)
    yield
    process.kill()
    process.wait()

def test_endless(server):
    time.sleep(600)

def test_after_it(server):
    pass
"""


@pytest.mark.nightly
def test_a_test_that_hangs_fails_alone_with_its_stack_and_leaves_no_server(
    tests: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_layers, "ALONE", ())
    mark = f"server-{uuid4()}"
    (tests / "quick" / "test_some.py").write_text(HANGING.format(mark=mark))
    outcome = run_layers.run("quick", tests, ["-o", "timeout=2"])
    assert outcome.failed and outcome.counts == {"passed": 1, "failed": 1, "skipped": 0, "errors": 0}
    output = capfd.readouterr().out
    assert "Timeout" in output and "time.sleep(600)" in output
    assert not [process.info for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or ())]


@pytest.mark.nightly
def test_a_hanging_test_that_ignores_signals_ends_its_layer(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tests.parent / "pytest.ini").write_text("[pytest]\nfaulthandler_exit_on_timeout = true\n")
    (tests / "quick" / "test_some.py").write_text(
        "import signal, time\n"
        "def test_deaf():\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    time.sleep(600)\n"
    )
    outcome = run_layers.run("quick", tests, ["-o", "timeout=1", "-o", "faulthandler_timeout=3"])
    assert outcome.failed
    assert "in test_deaf" in capfd.readouterr().err


def test_the_closing_line_has_the_format_of_pytest() -> None:
    outcomes = [
        Outcome("core", 0, 2.0, {"passed": 40, "failed": 0, "skipped": 1, "errors": 0}),
        Outcome("spark", 1, 3.5, {"passed": 1, "failed": 2, "skipped": 0, "errors": 0}),
    ]
    assert run_layers.closing_line(outcomes, 5.5).strip("= ") == "2 failed, 41 passed, 1 skipped in 5.50s"


def test_an_interrupted_layer_never_passes() -> None:
    outcomes = [Outcome("core", -9, 2.0, {})]
    assert run_layers.closing_line(outcomes, 2.0).strip("= ") == "1 errors in 2.00s"


def test_nightly_tests_and_nightly_parameters_run_only_in_the_nightly_run(tests: Path) -> None:
    (tests.parent / "pytest.ini").write_text("[pytest]\naddopts = -m 'not nightly'\nmarkers = nightly: slow\n")
    (tests / "quick" / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.nightly)])\n"
        "def test_some(n): pass\n"
    )
    assert run_layers.run("quick", tests).counts["passed"] == 1
    assert run_layers.run("quick", tests, run_layers.NIGHTLY).counts["passed"] == 2
