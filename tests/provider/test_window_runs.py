"""Whole runs of a replicator, from opening to closing, with steps that move nothing but figures."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.control import observe
from airflow_cdc_provider.control.reconcile import find_holes, pause_stream
from airflow_cdc_provider.control.replicator import utc_now
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.states import State, TableState
from tests.provider.small_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_first_run_opens_the_stream_and_copies_every_table(world: World) -> None:
    decision = world.open("r1")
    assert decision.follow == ("snapshot", "close_window")
    assert decision.plan.copy == world.tables
    assert (decision.plan.sealed, decision.plan.lo) == (1, {"slot": "100"})
    world.spark(decision)
    closing = world.close("r1")
    assert closing.problems == ()
    assert [(row.state, row.rows) for row in closing.rows] == [(TableState.REPLICATING, 10)] * 2


def test_changes_are_landed_merged_and_only_then_acknowledged(world: World) -> None:
    world.run("r1")
    world.source.change("public.a", "public.a")
    assert world.slot() == 100
    decision = world.open("r2")
    assert decision.follow == ("extract", "close_window")
    world.spark(decision)
    assert world.slot() == 100
    closing = world.close("r2")
    assert world.slot() == 102
    assert closing.moved == ("public_a",)
    assert [row.changes for row in closing.rows] == [{"update": 2}, {}]


def test_nothing_new_and_nobody_behind_follows_only_the_end_and_reads_no_table(world: World) -> None:
    world.run("r1")
    for number in range(3):
        (world.folder / "lake").rename(world.folder / "away")
        decision = world.open(f"idle{number}")
        assert decision.follow == ("close_window",)
        assert world.close(f"idle{number}").problems == ()
        (world.folder / "away").rename(world.folder / "lake")


def test_an_idle_run_leaves_the_time_when_a_target_was_read_so_that_it_is_read_again_after_an_hour(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run("r1")
    world.run("r2")
    seen = {table: row.seen_at for table, row in world.replicator.state.tables("shop").items()}
    world.run("idle")
    assert {table: row.seen_at for table, row in world.replicator.state.tables("shop").items()} == seen
    monkeypatch.setattr(observe, "SETTLED_FOR", timedelta(0))
    world.open("later")
    after = world.replicator.state.tables("shop")
    assert all(after[table].seen_at > at for table, at in seen.items())


def test_an_idle_source_is_acknowledged_by_an_empty_window_without_a_step(world: World) -> None:
    world.run("r1")
    world.source.write(end=500)
    decision = world.open("r2")
    assert decision.follow == ("close_window",)
    assert world.slot() == 100
    world.close("r2")
    assert world.slot() == 500
    assert world.replicator.log.sealed() == 2


def test_a_table_behind_the_log_is_staged_without_reading_the_source(world: World) -> None:
    world.run("r1")
    world.source.change("public.a")
    decision = world.open("r2")
    world.extract(decision.plan)
    closing = world.close("r2", failed=["stage"])
    assert [problem.code for problem in closing.problems] == ["RUN005", "RUN002", "RUN002"]
    assert world.slot() == 100
    decision = world.open("r3")
    assert decision.follow == ("stage", "close_window")
    world.spark(decision)
    assert world.close("r3").problems == ()
    assert world.slot() == 101


def test_a_second_run_leaves_the_lane_to_the_first_and_ends_well(world: World) -> None:
    world.run("r1")
    world.source.change("public.a")
    first = world.open("r2")
    second = world.open("r3")
    assert second.follow == ("close_window",)
    assert "another run has the lease of the stream lane" in " ".join(second.notes)
    assert world.close("r3").problems == ()
    world.spark(first)
    assert world.close("r2").problems == ()
    assert world.slot() == 101


def test_a_long_copy_does_not_stop_the_stream_of_its_siblings(world: World) -> None:
    world.run("r1")
    world.source.write(
        tables=[*world.source.read()["tables"], {**world.source.read()["tables"][0], "table": "public.c"}]
    )
    copying = world.open("r2")
    assert copying.follow == ("snapshot", "close_window")
    world.source.change("public.a", "public.c")
    meanwhile = world.open("r3")
    assert meanwhile.follow == ("extract", "close_window")
    assert meanwhile.plan.copy == ()
    world.spark(meanwhile)
    assert world.close("r3").problems == ()
    world.spark(copying)
    assert world.close("r2").problems == ()
    assert world.control("public.c").window == 2


def test_a_pause_is_a_fence_in_the_target_and_holds_until_resume(world: World) -> None:
    world.run("r1")
    before = world.control("public.a")
    command = world.ask(CommandKind.PAUSE, "public.a")
    world.source.change("public.a", "public.b")
    assert world.run("r2").problems == ()
    paused = world.control("public.a")
    assert (paused.state.name, paused.window) == (TableState.PAUSED, before.window)
    assert paused.token > before.token
    done = world.replicator.state.command(command.id)
    assert done and done.outcome == "pause: public.a"
    assert world.slot() == 102, "the log keeps what a paused table needs"

    world.ask(CommandKind.RESUME)
    decision = world.open("r3")
    assert decision.follow == ("stage", "close_window")
    world.spark(decision)
    assert world.close("r3").problems == ()
    assert (world.control("public.a").window, world.control("public.a").state.name) == (2, TableState.REPLICATING)


def test_a_run_that_moved_tables_publishes_where_they_stand_together(world: World) -> None:
    def cut() -> Cut | None:
        file = world.folder / "lake/_cuts.json"
        return from_plain(Cut, json.loads(file.read_text())) if file.exists() else None

    world.run("r1")
    world.source.change("public.a")
    world.run("r2")
    first = cut()
    assert first is not None and first.window == 2
    assert [(one.target, one.window) for one in first.tables] == [("public_a", 2), ("public_b", 1)]
    world.ask(CommandKind.PAUSE, "public.b")
    world.source.change("public.a", "public.b")
    world.run("r3")
    second = cut()
    assert second is not None and [(one.target, one.window) for one in second.tables] == [("public_a", 3)]
    world.run("r4")
    assert cut() == second, "nothing moved"
    assert world.told[-1] == "published a cut of 1 tables at window 3"


def test_a_rewind_that_nobody_ended_is_ended_by_the_next_run(world: World) -> None:
    """Also where the request itself is lost with the state store: the table says where it goes."""
    world.run("r1")
    world.source.change("public.a")
    world.run("r2")
    held = world.replicator.target.state("public.a", "public_a")
    assert held.control is not None and held.control.window == 2
    past = world.replicator.target.version_at_or_before("public.a", "public_a", 1)
    assert past is not None
    going = State(TableState.REWINDING, utc_now(), "back to window 1", version=past.version)
    world.replicator.target.fence("public_a", held, held.control.fenced(going))
    world.source.change("public.b")
    assert world.run("r3").problems == ()
    control = world.control("public.a")
    assert (control.window, control.state.name, control.state.reason) == (3, TableState.REPLICATING, "back to window 1")
    assert [n.detail["window"] for n in world.replicator.state.audit("shop", 9) if n.action == "rewind"] == [1]


def test_a_resync_leaves_the_stream_copies_and_comes_back(world: World) -> None:
    world.run("r1")
    command = world.ask(CommandKind.RESYNC, "public.b")
    world.source.change("public.a", "public.b")
    decision = world.open("r2")
    assert decision.follow == ("extract", "reconcile.pause_stream", "close_window")
    assert (decision.plan.stream, decision.plan.reconcile) == (("public.a",), ("public.b",))
    world.spark(decision)
    assert world.reconcile("r2") == ("public.b",)
    assert world.close("r2").problems == ()
    assert (world.control("public.b").window, world.control("public.b").state.name) == (2, TableState.REPLICATING)
    done = world.replicator.state.command(command.id)
    assert done and done.outcome == "copied again: public.b"
    assert world.open("r3").follow == ("close_window",)


def test_a_resync_that_crashed_goes_on_in_the_next_run(world: World) -> None:
    world.run("r1")
    command = world.ask(CommandKind.RESYNC, "public.b")
    world.open("r2")
    pause_stream(world.replicator, "r2", world.told.append)
    closing = world.close("r2", failed=["reconcile.resync"])
    assert closing.problems
    assert [pending.id for pending in world.replicator.state.pending("shop")] == [command.id]
    decision = world.open("r3")
    assert decision.plan.reconcile == ("public.b",)
    world.reconcile("r3")
    assert world.close("r3").problems == ()
    assert world.replicator.state.pending("shop") == ()


def test_verify_is_a_run_of_its_own_and_ends_its_request(world: World) -> None:
    world.run("r1")
    command = world.ask(CommandKind.VERIFY)
    world.source.change("public.a")
    decision = world.open("r2")
    assert decision.follow == ("verify", "close_window")
    world.spark(decision)
    assert world.close("r2").problems == ()
    done = world.replicator.state.command(command.id)
    assert done and done.result["identical"] is True
    assert [table["target_rows"] for table in done.result["tables"]] == [10, 10]
    assert done.outcome == "identical"


def test_a_proof_of_a_source_without_exact_snapshots_says_so(world: World) -> None:
    world.run("r1")
    world.proof = {**world.proof, "inexact": True}
    command = world.ask(CommandKind.VERIFY)
    assert world.run("r2").problems == ()
    done = world.replicator.state.command(command.id)
    assert done and done.outcome.startswith("identical; inexact")
    assert all(table["inexact"] for table in done.result["tables"])


def test_the_stream_lane_is_free_while_the_copy_of_the_same_run_goes_on(world: World) -> None:
    world.run("r1")
    first = world.source.read()["tables"][0]
    world.source.write(tables=[*world.source.read()["tables"], {**first, "table": "public.c"}])
    world.source.change("public.a")
    decision = world.open("r2")
    assert decision.follow == ("snapshot", "extract", "close_window")
    world.extract(decision.plan)
    world.merge(decision.plan)
    find_holes(world.replicator, "r2", world.told.append)
    world.source.change("public.a")
    meanwhile = world.open("r3")
    assert meanwhile.follow == ("extract", "close_window")
    world.spark(meanwhile)
    assert world.close("r3").problems == ()
    world.copy(decision.plan, "snapshot", decision.plan.copy, TableState.REPLICATING)
    assert world.close("r2").problems == ()
    assert world.slot() == 102
