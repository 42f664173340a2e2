"""A rewind whose process has died, or whose target does not have the version any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.cli import leaving
from airflow_cdc_provider.control import rewind
from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.immediate_commands import carry_out
from airflow_cdc_provider.control.reconcile import pause_stream
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.states import State, TableState
from tests.provider.command_line import CommandLine, as_listed
from tests.provider.file_target import FileTarget
from tests.provider.run_harness import RunHarness
from tests.provider.test_delete import Killed, killed_at

RESYNC, RESUME, REWIND = CommandKind.RESYNC, CommandKind.RESUME, CommandKind.REWIND


@pytest.fixture
def at_window_2(harness: RunHarness) -> RunHarness:
    assert as_listed(harness).run("r1").problems == ()
    harness.source.change(*harness.tables)
    assert harness.run("r2").problems == ()
    return harness


def dies(harness: RunHarness, monkeypatch: pytest.MonkeyPatch, at: str = "rewind.after_cut") -> Command:
    """A rewind to window 1 of ``public.a`` whose process dies."""
    request = harness.request(REWIND, "public.a", to="1")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(rewind, "failpoint", killed_at(at))
        carry_out(harness.replicator, [request], {"public.a": "public_a"}, {}, "ann")
    assert harness.control("public.a").state.name is TableState.REWINDING
    return request


def lose_request(harness: RunHarness, request: Command) -> None:
    """As with a state store that is rebuilt."""
    harness.state.finish(request.id, "lost", {}, failed=True)


def unreadable(patch: pytest.MonkeyPatch) -> None:
    def restore_version(*arguments: object) -> None:
        raise Blocked.of("TGT024", "the version is gone", do="resync it")

    patch.setattr(FileTarget, "restore_version", restore_version)


def unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FileTarget, "control_at", lambda *_: None)


def test_a_resume_does_not_end_a_rewind(at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_request(at_window_2, dies(at_window_2, monkeypatch))
    resume = at_window_2.request(RESUME)
    carry_out(at_window_2.replicator, [resume], {"public.a": "public_a"}, {}, "ann")
    ended = at_window_2.state.command(resume.id)
    assert ended is not None and "public.a is being rewound" in ended.outcome
    assert at_window_2.run("r3").problems == ()
    assert at_window_2.control("public.a").window == 2
    audited = [entry.detail["window"] for entry in at_window_2.state.audit("shop", 20) if entry.action == "rewind"]
    assert audited == [1], "window 2 was applied again"


@pytest.mark.parametrize("broken", [unreadable, unknown])
def test_a_version_that_has_gone_stops_one_table_until_it_is_copied_again(
    at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """It is unknown whether the first process has restored the rows."""
    harness, request = at_window_2, dies(at_window_2, monkeypatch)
    broken(monkeypatch)
    harness.source.change(*harness.tables)
    for run in ("r3", "r4"):
        assert [problem.code for problem in harness.run(run).problems] == ["RUN003"]
        row = harness.state.tables("shop")["public.a"]
        assert (row.state, row.remedy) == (TableState.BLOCKED, "airflow cdc resync shop --table public.a")
        state = harness.control("public.a").state
        assert (state.name, state.version) == (TableState.REWINDING, None)
        assert state.remedy == "airflow cdc resync shop --table public.a"
    assert harness.control("public.b").window == 3
    ended = harness.state.command(request.id)
    assert ended is not None and ended.status is CommandStatus.FAILED
    assert not dry_run(harness.replicator).has_work, "runs without end would find nothing to do"
    harness.request(RESUME)
    harness.run("r5")
    assert harness.control("public.a").state.name is TableState.REWINDING
    harness.request(RESYNC, "public.a")
    assert harness.run("r6").problems == ()
    assert harness.control("public.a").state.name is TableState.REPLICATING


def test_a_version_that_has_gone_before_the_rewind_leaves_the_table_as_it_was(
    at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable(monkeypatch)
    at_window_2.request(REWIND, "public.a", to="1")
    assert at_window_2.run("r3").problems == ()
    control = at_window_2.control("public.a")
    assert (control.state.name, control.window) == (TableState.REPLICATING, 2)


def test_another_rewind_that_the_target_refuses_does_not_end_the_wait_for_a_new_copy(
    at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = at_window_2
    dies(harness, monkeypatch)
    unreadable(monkeypatch)
    harness.run("r3")
    harness.request(REWIND, "public.a", to="1")
    harness.run("r4")
    state = harness.control("public.a").state
    assert (state.name, state.version) == (TableState.REWINDING, None)
    assert state.remedy == "airflow cdc resync shop --table public.a"


def test_a_blocked_table_stays_blocked_after_a_rewind_that_the_target_refuses(
    at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable(monkeypatch)
    replicator, blocked = (
        at_window_2.replicator,
        State(TableState.BLOCKED, "2026-01-01T00:00:00Z", "column x was dropped"),
    )
    current = replicator.targets.state("public.a", "public_a")
    commit_fence(replicator, "public.a", "public_a", current, "r3", blocked)
    request = at_window_2.request(REWIND, "public.a", to="1")
    carry_out(replicator, [request], {"public.a": "public_a"}, {}, "ann")
    assert at_window_2.control("public.a").state == blocked


def test_a_run_that_has_just_finished_a_rewind_finishes_no_second_one(
    at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = dies(at_window_2, monkeypatch)
    assert at_window_2.run("r3").problems == ()
    ended = at_window_2.state.command(request.id)
    assert ended is not None and ended.outcome == "rewind: public.a"
    assert at_window_2.control("public.a").window == 2
    assert not [line for line in at_window_2.log_lines if "does not have the version" in line]


def test_a_copy_without_a_request_waits_for_a_rewind(at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = at_window_2
    harness.source.change("public.a")
    decision = harness.open("r3")
    harness.spark(decision)
    harness.replicator.run("r3").write_holes(decision.plan.opening, ("public.a",))
    dies(harness, monkeypatch)
    assert pause_stream(harness.replicator, "r3", harness.log_lines.append) == ()
    assert harness.control("public.a").state.name is TableState.REWINDING
    assert harness.state.claims("shop") == ()


def test_a_renaming_finishes_a_rewind_first(
    cdc: CommandLine, at_window_2: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "running_tasks", lambda dag_id: [])
    dies(at_window_2, monkeypatch)
    assert cdc("rename", "shop", "mall").code == 0
    path = Path(at_window_2.folder, "dags/replicators/shop.yaml")
    path.write_text(path.read_text().replace("name: shop", "name: mall"))
    at_window_2.definition = replace(at_window_2.definition, name="mall")
    control = at_window_2.control("public.a")
    assert (control.replicator, control.state.name, control.window) == ("mall", TableState.REPLICATING, 1)
