"""The runner of the layers: what it counts, and that it does not wait for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import run_layers
from tests.run_layers import Outcome


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of tests with one layer, ``quick``, that has four seconds."""
    (tmp_path / "tests" / "quick").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setitem(run_layers.BUDGETS_S, "quick", 4)
    return tmp_path / "tests"


def test_a_layer_is_counted(tests: Path) -> None:
    (tests / "quick" / "test_some.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 0\n"
        "def test_left_out(): pytest.skip()\n"
        "def test_broken(nothing): pass\n"
    )
    outcome = asyncio.run(run_layers.run("quick", tests))
    assert outcome.failed and not outcome.late
    assert outcome.counts == {"passed": 1, "failed": 1, "skipped": 1, "errors": 1}


def test_a_layer_past_its_budget_is_stopped_and_has_failed(tests: Path) -> None:
    (tests / "quick" / "test_some.py").write_text("import time\ndef test_endless(): time.sleep(600)\n")
    outcome = asyncio.run(run_layers.run("quick", tests))
    assert outcome.late and outcome.failed
    assert outcome.took_s < 60
    assert "too slow" in run_layers.table([outcome])


def test_two_layers_run_side_by_side_and_all_are_told(
    tests: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each waits for the other to have begun."""
    monkeypatch.setitem(run_layers.BUDGETS_S, "beside", 4)
    (tests / "beside").mkdir()
    for mine, other in (("quick", "beside"), ("beside", "quick")):
        (tests / mine / "test_some.py").write_text(
            "from pathlib import Path\n"
            "import time\n"
            "def test_beside():\n"
            f"    Path({str(tests / mine)!r}, 'begun').touch()\n"
            f"    while not Path({str(tests / other)!r}, 'begun').exists(): time.sleep(0.05)\n"
        )
    outcomes = asyncio.run(run_layers.run_all(["quick", "beside"], tests))
    assert [(outcome.layer, outcome.failed) for outcome in outcomes] == [("quick", False), ("beside", False)]
    printed = capsys.readouterr().out
    assert "--- quick ---" in printed and "--- beside ---" in printed


def test_an_interrupt_reaches_a_layer_that_is_under_way(tests: Path) -> None:
    (tests / "quick" / "test_some.py").write_text(
        "import pathlib, time\n"
        "def test_endless():\n"
        f"    here = pathlib.Path({str(tests)!r})\n"
        "    (here / 'begun').touch()\n"
        "    try: time.sleep(600)\n"
        "    finally: (here / 'cleaned').touch()\n"
    )

    async def interrupted() -> None:
        layer = asyncio.create_task(run_layers.run("quick", tests))
        while not (tests / "begun").exists():
            await asyncio.sleep(0.05)
        layer.cancel()
        await layer

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert (tests / "cleaned").exists()


def test_the_closing_line_is_written_as_pytest_writes_it() -> None:
    outcomes = [
        Outcome("core", 0, 2.0, {"passed": 40, "failed": 0, "skipped": 1, "errors": 0}),
        Outcome("spark", 1, 3.5, {"passed": 1, "failed": 2, "skipped": 0, "errors": 0}),
    ]
    assert run_layers.closing_line(outcomes, 4.5).strip("= ") == "2 failed, 41 passed, 1 skipped in 4.50s"


def test_a_layer_that_was_cut_short_is_never_a_pass() -> None:
    outcomes = [Outcome("core", -9, 2.0, {})]
    assert run_layers.closing_line(outcomes, 4.5).strip("= ") == "1 errors in 4.50s"
