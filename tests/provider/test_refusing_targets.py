"""Whole runs with a target that cannot hold a table, or whose present table takes no changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, TargetUnavailable
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.target import TargetState
from tests.provider import run_harness
from tests.provider.run_harness import LoggedFileTarget, RunHarness

WIDE = Problem("TGT058", "a table has too many columns for the target", "public.a")
OTHER_COLLATION = Problem("TGT094", "texts of the table are not compared by their characters", "public.a")


class RefusingTarget(LoggedFileTarget):
    """``wide`` and ``collated``: the copies with these problems. ``answers``: whether it says what it refuses."""

    wide: frozenset[str] = frozenset()
    collated: frozenset[str] = frozenset()
    answers = True

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        if not self.answers:
            raise TargetUnavailable.of("TGT060", "the target cannot be reached")
        return {task.table: WIDE for task in tables if task.table in self.wide}

    def state(self, table: str, target_table: str) -> TargetState:
        state = super().state(table, target_table)
        return replace(state, unfit=Unfit(OTHER_COLLATION, copy_helps=True)) if table in self.collated else state


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> type[RefusingTarget]:
    for name, value in {"wide": frozenset(), "collated": frozenset(), "answers": True}.items():
        monkeypatch.setattr(RefusingTarget, name, value)
    monkeypatch.setattr(run_harness, "LoggedFileTarget", RefusingTarget)
    return RefusingTarget


def states(harness: RunHarness) -> list[TableState]:
    return [row.state for _, row in sorted(harness.state.tables("shop").items())]


def test_a_table_that_the_target_cannot_hold_is_blocked_before_it_is_copied_and_the_others_go_on(
    target: type[RefusingTarget], tmp_path: Path
) -> None:
    harness = RunHarness(tmp_path)
    target.wide = frozenset({"public.a"})
    decision = harness.open("r1")
    assert decision.plan.copy == ("public.b",)
    harness.spark(decision)
    harness.close("r1")
    assert states(harness) == [TableState.BLOCKED, TableState.REPLICATING]
    assert harness.state.tables("shop")["public.a"].reason == WIDE.what
    target.wide = frozenset()
    harness.run("r2")
    assert states(harness) == [TableState.REPLICATING] * 2


def test_a_copy_that_has_become_unfit_takes_no_changes_until_it_is_copied_again(
    target: type[RefusingTarget], tmp_path: Path
) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    target.collated = frozenset({"public.a"})
    harness.source.change("public.a", "public.b")
    harness.run("r2")
    assert (harness.control("public.a").window, harness.control("public.b").window) == (1, 2)
    assert states(harness) == [TableState.BLOCKED, TableState.REPLICATING]
    harness.request(CommandKind.RESYNC, "public.a")
    assert harness.open("r3").plan.reconcile == ("public.a",)


def test_the_copies_of_a_target_that_does_not_say_what_it_refuses_are_failing(
    target: type[RefusingTarget], tmp_path: Path
) -> None:
    harness = RunHarness(tmp_path)
    harness.run("r1")
    harness.source.change("public.a")
    target.answers = False
    harness.run("r2")
    assert states(harness) == [TableState.FAILING] * 2
