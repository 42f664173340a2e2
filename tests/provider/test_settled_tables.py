"""Idle runs: copies that have nothing to apply are not read from their target, as long as it lists them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

from airflow_cdc_provider.control import immediate_commands, inventory, reconcile, rename_replicator
from airflow_cdc_provider.control.settled_tables import settled_tables
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.target import TargetState
from tests.provider import run_harness
from tests.provider.run_harness import LoggedFileTarget, RunHarness

Result = TypeVar("Result")

MANY = 500
PART = 1 / 3
"""Of the processor time of the first run, in the same process: seconds depend on the machine and its load."""


class CountedTarget(LoggedFileTarget):
    """Counts what is asked of it. ``answers``: whether it lists its tables."""

    read: list[str] = []  # noqa: RUF012
    listed: list[int] = []  # noqa: RUF012
    answers = True

    def state(self, table: str, target_table: str) -> TargetState:
        self.read.append(table)
        return super().state(table, target_table)

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        self.listed.append(len(target_tables))
        if not self.answers:
            raise TargetUnavailable.of("TGT010", "the lake does not answer")
        return super().existing(target_tables)


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> type[CountedTarget]:
    for name, value in {"read": [], "listed": [], "answers": True}.items():
        monkeypatch.setattr(CountedTarget, name, value)
    monkeypatch.setattr(run_harness, "LoggedFileTarget", CountedTarget)
    return CountedTarget


def forget(target: type[CountedTarget]) -> None:
    target.read.clear()
    target.listed.clear()


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """``run``'s result, and the seconds of processor time that it took."""
    before = time.process_time()
    return run(), time.process_time() - before


def test_an_idle_run_over_500_tables_asks_their_target_once_and_reads_none(
    target: type[CountedTarget], tmp_path: Path
) -> None:
    harness = RunHarness(tmp_path, tuple(f"public.t{number}" for number in range(MANY)))
    first, first_s = timed(lambda: harness.run("r1"))
    assert first.problems == ()
    forget(target)
    idle, idle_s = timed(lambda: harness.open("idle"))
    assert idle.follow == ("close_window",)
    assert (target.read, target.listed) == ([], [MANY])
    assert idle_s < first_s * PART
    assert harness.close("idle").problems == ()


def test_a_table_that_was_dropped_in_the_target_is_found_by_the_next_idle_run(
    target: type[CountedTarget], tmp_path: Path
) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    shutil.rmtree(tmp_path / "lake" / "public_a")
    forget(target)
    decision = harness.open("idle")
    assert set(target.read) == {"public.a"}
    assert decision.plan.copy == () and [lost.table for lost in decision.table_decisions if lost.problem] == [
        "public.a"
    ]
    harness.close("idle")
    rows = harness.state.tables("shop")
    assert (rows["public.a"].state, rows["public.b"].state) == (TableState.BLOCKED, TableState.REPLICATING)


def test_the_tables_of_a_target_that_does_not_list_them_are_read_one_by_one(
    target: type[CountedTarget], tmp_path: Path
) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    target.answers = False
    forget(target)
    assert harness.open("idle").follow == ("close_window",)
    assert set(target.read) == {"public.a", "public.b"}


def test_a_run_with_changes_reads_every_table_and_asks_for_no_list(target: type[CountedTarget], tmp_path: Path) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    harness.source.change("public.a")
    forget(target)
    harness.open("r2")
    assert (set(target.read), target.listed) == ({"public.a", "public.b"}, [])


AHEAD = "2126-01-01T00:00:00.000+00:00"
"""By the clock of the host of a command or of a worker; a run compares by that of the state store."""


@pytest.mark.parametrize("module", [immediate_commands, reconcile, inventory, rename_replicator])
def test_the_time_at_which_a_target_was_read_is_that_of_the_state_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    monkeypatch.setattr(module, "utc_now", lambda: AHEAD, raising=False)
    before = harness.state.now()
    if module is immediate_commands:
        submit_command(harness.replicator, CommandKind.PAUSE, ("public.a",), {}, "", "ann")
    elif module is reconcile:
        harness.request(CommandKind.RESYNC, "public.a")
        harness.open("r2")
        reconcile.pause_stream(harness.replicator, "r2", print)
    elif module is inventory:
        inventory.rebuild_index(harness.replicator, "ann")
    else:
        rename_replicator._refresh_rows(harness.replicator, "mall")
    assert before <= harness.state.tables("shop")["public.a"].seen_at <= harness.state.now()


def test_a_table_that_was_read_later_than_now_is_not_settled(tmp_path: Path) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    harness.run("r2")
    rows, sealed, at = harness.state.tables("shop"), harness.replicator.log.sealed(), harness.state.now()
    assert settled_tables(rows, (), sealed, at) == set(rows)
    rows["public.a"] = replace(rows["public.a"], seen_at=AHEAD)
    assert settled_tables(rows, (), sealed, at) == {"public.b"}
