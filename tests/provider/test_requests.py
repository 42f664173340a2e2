"""Pauses, resumes and rewinds that wait for a run: it carries out each, in the order of the requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_cdc_provider.control.immediate_commands import carry_out
from airflow_cdc_provider.core.decisions.commands import CARRIED_OUT, CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.log.copy_progress import paused_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from tests.provider.file_target import FileTarget
from tests.provider.run_harness import RunHarness

PAUSE, RESUME, REWIND = CommandKind.PAUSE, CommandKind.RESUME, CommandKind.REWIND


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("r1").problems == ()
    return harness


def states(harness: RunHarness) -> dict[str, TableState]:
    return {table: harness.control(table).state.name for table in harness.tables}


def test_one_run_carries_out_all_pending_requests_in_their_order(harness: RunHarness) -> None:
    harness.source.change(*harness.tables)
    harness.run("r2")
    requests = [
        harness.request(PAUSE, "public.a", reason="first"),
        harness.request(PAUSE, "public.b"),
        harness.request(RESUME),
        harness.request(REWIND, "public.a", to="1"),
        harness.request(PAUSE, "public.b", reason="last"),
    ]
    assert harness.run("r3").problems == ()
    ended = [harness.state.command(one.id) for one in requests]
    assert [one.outcome for one in ended if one] == [
        "pause: public.a",
        "pause: public.b",
        "resume: public.a, public.b",
        "rewind: public.a",
        "pause: public.b",
    ]
    assert {one.status for one in ended if one} == {CommandStatus.DONE}
    assert states(harness) == {"public.a": TableState.REPLICATING, "public.b": TableState.PAUSED}
    assert harness.control("public.b").state.reason == "last"
    assert harness.control("public.a").window == 2, "rewound and merged again"


def test_a_rewind_whose_process_dies_after_it_is_applied_again_by_an_idle_run(harness: RunHarness) -> None:
    harness.source.change("public.a")
    harness.run("r2")
    request = harness.request(REWIND, "public.a", to="1")
    carry_out(harness.replicator, [request], {"public.a": "public_a"}, {}, "ann")
    assert harness.state.pending("shop") == () and harness.control("public.a").window == 1
    assert "stage" in harness.open("r3").follow


def test_a_table_without_changes_goes_back_to_a_window_that_it_has_passed(harness: RunHarness) -> None:
    harness.source.change("public.b")
    harness.run("r2")
    for run in ("r3", "r4"):
        harness.source.change("public.a")
        harness.run(run)
    request = harness.request(REWIND, "public.b", to="3")
    harness.run("r5")
    ended = harness.state.command(request.id)
    assert ended is not None and (ended.status, ended.outcome) == (CommandStatus.DONE, "rewind: public.b")


def test_a_rewind_does_not_repeat_a_resync_that_waits_for_another_table(harness: RunHarness) -> None:
    harness.replicator.targets.only.store.write("public_b/locked", b"")  # type: ignore[attr-defined]
    harness.source.change("public.a")
    resync = harness.request(CommandKind.RESYNC)
    harness.run("r2")
    harness.source.change("public.a")
    harness.run("r3")
    harness.request(REWIND, "public.a", to="1")
    decision = harness.open("r4")
    assert "stage" in decision.follow and decision.plan.reconcile == ()
    assert (harness.control("public.a").window, harness.control("public.a").resyncs) == (1, (resync.id,))


def test_a_rewind_that_waits_for_one_table_undoes_no_resync_of_another(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restore_version(self: FileTarget, target_table: str, *_: object) -> None:
        if target_table == "public_b":
            raise TargetUnavailable.of("TGT010", "the lake does not answer")

    harness.source.change(*harness.tables)
    harness.run("r2")
    request = harness.request(REWIND, "public.a", "public.b", "public.c", to="1")
    with monkeypatch.context() as patch:
        patch.setattr(FileTarget, "restore_version", restore_version)
        harness.run("r3")
        harness.request(CommandKind.RESYNC, "public.a")
        harness.run("r4")
    waiting = harness.state.command(request.id)
    assert waiting is not None and waiting.ended["public.a"] == CARRIED_OUT
    assert harness.run("r5").problems == ()
    ended = harness.state.command(request.id)
    assert ended is not None
    assert ended.outcome == "rewind: public.a, public.b; refused: shop has no table public.c"
    assert [one["table"] for one in ended.result["tables"]] == ["public.a", "public.b", "public.c"]
    rewound = [one.detail["table"] for one in harness.state.audit("shop", 50) if one.action == "rewind"]
    assert sorted(rewound) == ["public.a", "public.b"]


def test_a_request_for_a_table_that_does_not_answer_waits_and_so_do_later_ones_for_it(
    harness: RunHarness,
) -> None:
    store = harness.replicator.targets.only.store  # type: ignore[attr-defined]
    store.write("public_b/locked", b"")
    first, second = harness.request(PAUSE), harness.request(RESUME, "public.b")
    harness.run("r2")
    assert [one.id for one in harness.state.pending("shop")] == [first.id, second.id]
    store.delete("public_b/locked")
    third = harness.request(RESUME, "public.a")
    harness.run("r3")
    assert harness.state.pending("shop") == ()
    assert {one.status for one in map(harness.state.command, (first.id, second.id, third.id)) if one} == {
        CommandStatus.DONE
    }
    assert set(states(harness).values()) == {TableState.REPLICATING}


def test_a_request_for_other_tables_does_not_wait(harness: RunHarness) -> None:
    harness.replicator.targets.only.store.write("public_b/locked", b"")  # type: ignore[attr-defined]
    waiting, other = harness.request(PAUSE, "public.b"), harness.request(PAUSE, "public.a")
    harness.run("r2")
    assert [one.id for one in harness.state.pending("shop")] == [waiting.id]
    assert harness.control("public.a").state.command == other.id


def test_a_request_that_another_process_has_carried_out_is_not_carried_out_again(harness: RunHarness) -> None:
    pause = harness.request(PAUSE, "public.a")
    replicator, targets = harness.replicator, {table: table.replace(".", "_") for table in harness.tables}
    assert carry_out(replicator, [pause], targets, {}, "ann")
    assert carry_out(replicator, [harness.request(RESUME, "public.a")], targets, {}, "ann")
    carry_out(replicator, [pause], targets, {}, "r2")
    assert harness.control("public.a").state.name is TableState.REPLICATING


@pytest.mark.parametrize("carried_out_by", ["the command line", "a run"])
def test_a_resume_ends_the_pause_of_a_first_copy_that_was_committed(harness: RunHarness, carried_out_by: str) -> None:
    """The process of the pause died before it saw the copy."""
    paused = State(TableState.PAUSED, utc_now(), "pause by ann", set_by="ann")
    harness.replicator.log.store.write(paused_path("public.a"), json.dumps(to_plain(paused)).encode())
    resume = harness.request(RESUME, "public.a")
    if carried_out_by == "the command line":
        carry_out(harness.replicator, [resume], {"public.a": "public_a"}, {}, "ann")
    assert harness.run("r2").problems == ()
    assert harness.control("public.a").state.name is TableState.REPLICATING
    assert not harness.replicator.log.store.exists(paused_path("public.a"))
