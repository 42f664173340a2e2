"""Runs that meet trouble: each table's own, the source's, the log's, the target's, the state store's."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.reconcile import find_holes
from airflow_cdc_provider.control.replicator import utc_now
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable, StagingInvalid
from airflow_cdc_provider.core.log.change_log import Hole, manifest_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Columns, Reconcile, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.small_world import World, schema


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    assert world.run("r1").problems == ()
    return world


def test_a_table_that_somebody_else_made_is_left_alone_and_its_siblings_go_on(world: World) -> None:
    world.source.write(tables=[to_plain(schema(table)) for table in (*world.tables, "public.c")])
    world.commit("public_c", replace(world.control("public.a"), table="public.x", replicator="other"))
    world.source.change("public.a")
    closing = world.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.c")]
    assert "belongs to another replicator" in closing.problems[0].what
    assert str(closing.problems[0]).count("do:") == 1
    assert world.control("public.a").window == 2
    assert world.replicator.target.state("public.c", "public_c").version == 0


def test_another_state_store_is_named_and_nothing_moves_until_the_index_is_rebuilt(world: World) -> None:
    (world.folder / "state.db").unlink()
    world.source.change("public.a")
    decision = world.open("r2")
    assert decision.follow == ("close_window",)
    assert decision.stop is not None and decision.stop.code == "STA007"
    assert "airflow cdc state rebuild shop" in decision.stop.do
    world.close("r2")
    assert world.slot() == 100

    before = world.control("public.a")
    assert [row.table for row in rebuild_index(world.replicator, "ann")] == list(world.tables)
    assert world.control("public.a").fence == before.fence + 1
    assert world.run("r3").problems == ()
    assert world.slot() == 101


def test_a_rebuilt_index_knows_paused_tables_and_takes_nothing_over_twice(world: World) -> None:
    world.ask(CommandKind.PAUSE, "public.a")
    world.run("r2")
    (world.folder / "state.db").unlink()
    states = {row.table: row.state for row in rebuild_index(world.replicator, "ann")}
    assert states == {"public.a": TableState.PAUSED, "public.b": TableState.REPLICATING}
    fence = world.control("public.b").fence
    rebuild_index(world.replicator, "ann")
    assert world.control("public.b").fence == fence


def test_a_changed_rule_blocks_its_table_until_a_resync(world: World) -> None:
    rule = TableRule("public.a", columns=Columns(exclude=("name",)))
    world.definition = replace(world.definition, tables=(rule, *world.definition.tables))
    world.source.change("public.a", "public.b")
    closing = world.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.a")]
    assert closing.problems[0].do.endswith("airflow cdc resync shop --table public.a")
    assert world.control("public.b").window == 2
    assert world.slot() == 102, "a blocked table does not hold the source, the log keeps its windows"
    world.ask(CommandKind.RESYNC, "public.a")
    assert world.run("r3").problems == ()
    assert world.run("r4").problems == ()


def test_a_target_table_that_is_gone_blocks_until_a_resync_copies_it(world: World) -> None:
    world.replicator.target.store.delete("public_a")  # type: ignore[attr-defined]
    world.source.change("public.a")
    closing = world.run("r2")
    assert ["is missing" in problem.what for problem in closing.problems] == [True]
    world.ask(CommandKind.RESYNC, "public.a")
    decision = world.open("r3")
    assert decision.plan.copy == ("public.a",)
    world.spark(decision)
    assert world.close("r3").problems == ()
    assert world.replicator.state.pending("shop") == ()


def test_a_lost_position_blocks_every_table_and_acknowledges_nothing(world: World) -> None:
    world.source.write(slot=None)
    closing = world.run("r2")
    assert {problem.code for problem in closing.problems} == {"SRC030", "RUN003"}
    assert world.source.read()["slot"] is None
    assert world.replicator.log.sealed() == 1


def test_what_the_log_holds_is_applied_though_the_position_is_lost(world: World) -> None:
    world.source.change("public.a")
    decision = world.open("r2")
    world.extract(decision.plan)
    world.close("r2", failed=["stage"])
    world.source.write(slot=None)
    decision = world.open("r3")
    assert decision.follow == ("stage", "close_window")
    world.spark(decision)
    world.close("r3")
    assert world.control("public.a").window == 2


def test_after_a_lost_position_a_resync_opens_the_stream_and_the_others_keep_a_hole(world: World) -> None:
    world.source.change("public.a")
    world.source.write(slot=None, end=900)
    world.ask(CommandKind.RESYNC, "public.a")
    closing = world.run("r2")
    assert world.control("public.a").window == 2
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.b")]
    assert "hole" in closing.problems[0].what
    manifest = world.replicator.log.manifest(2)
    assert (manifest.lo, manifest.hi) == ({"slot": "100"}, {"slot": "900"})
    assert {hole.table for hole in manifest.holes} == set(world.tables)
    world.ask(CommandKind.RESYNC, "public.b")
    assert world.run("r3").problems == ()


def test_reconcile_auto_copies_every_table_again_after_a_lost_position(world: World) -> None:
    source = replace(world.definition.source, reconcile=Reconcile.AUTO)
    world.definition = replace(world.definition, source=source)
    world.source.write(slot=None, end=900)
    assert world.run("r2").problems == ()
    assert {world.control(table).window for table in world.tables} == {2}
    assert world.open("r3").follow == ("close_window",)


@pytest.mark.parametrize("reconcile", Reconcile)
def test_a_table_that_the_stream_does_not_carry_is_blocked_and_the_others_go_on(
    world: World, reconcile: Reconcile
) -> None:
    source = replace(world.definition.source, reconcile=reconcile)
    world.definition = replace(world.definition, source=source)
    world.source.write(outside=["public.a"])
    world.source.change("public.b")
    closing = world.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.a")]
    row = world.replicator.state.tables(world.definition.name)["public.a"]
    assert (row.state, row.reason, row.remedy) == (TableState.BLOCKED, "public.a is not carried", "list it")
    assert world.control("public.b").window == 2
    world.source.write(outside=[])
    assert world.run("r3").problems == ()


def test_another_source_stops_the_replicator_and_names_what_changed(world: World) -> None:
    world.source.write(identity={"system": "8"})
    world.source.change("public.a")
    decision = world.open("r2")
    assert decision.stop is not None and decision.stop.found == "system 7 → 8"
    assert decision.follow == ("close_window",)
    world.close("r2")
    assert world.slot() == 100
    world.ask(CommandKind.RESYNC)
    assert world.run("r3").problems == ()
    assert world.replicator.log.manifest(2).epoch == 2


def test_a_stream_that_is_opened_anew_has_an_epoch_above_all_that_was_copied_from_the_one_before(world: World) -> None:
    """Though the source is the same: its places may have gone back."""
    world.source.write(slot=None, end=50)
    world.ask(CommandKind.RESYNC)
    assert world.run("r2").problems == ()
    assert world.replicator.log.manifest(2).epoch == 2
    assert {world.control(table).epoch for table in world.tables} == {2}
    shutil.rmtree(world.replicator.log.store.url(""))
    world.ask(CommandKind.RESYNC)
    assert world.run("r3").problems == ()
    assert world.replicator.log.manifest(1).epoch == 3


def test_another_staging_folder_stops_the_replicator(world: World) -> None:
    world.replicator.log.store.delete("LOG")
    world.source.change("public.a")
    decision = world.open("r2")
    assert decision.stop is not None and decision.stop.code == "LOG001"
    assert world.close("r2").problems
    assert world.slot() == 100


def test_a_manifest_that_is_not_the_one_a_table_was_written_from_stops_the_replicator(world: World) -> None:
    path, log = manifest_path(1), world.replicator.log
    other = replace(log.manifest(1), sealed_at="2020-01-01T00:00:00Z")
    log.store.write(path, other.encode())
    world.source.change("public.a")
    decision = world.open("r2")
    assert decision.stop is not None and decision.stop.code == "LOG003"


def test_a_damaged_manifest_stops_the_run_with_its_name(world: World) -> None:
    world.replicator.log.store.write(manifest_path(1), b"{}\nsha256 0\n")
    with pytest.raises(StagingInvalid, match="STG002"):
        world.open("r2")


def test_a_table_that_was_taken_back_is_fenced_and_the_log_applied_again(world: World) -> None:
    old = world.control("public.a")
    for kind in (CommandKind.PAUSE, CommandKind.RESUME):
        world.ask(kind, "public.a")
        world.open("r2")
        world.close("r2")
    world.source.change("public.a")
    world.run("r3")
    token = world.control("public.a").token
    target = world.replicator.target
    target.store.write("public_a/restored", b"4")  # type: ignore[attr-defined]
    held = target.state("public.a", "public_a")
    assert (held.restored, held.control, held.token) == (True, old, token)
    world.source.change("public.b")
    decision = world.open("r4")
    assert world.control("public.a").token > token
    assert "public.a" in decision.plan.stream
    world.spark(decision)
    world.close("r4")
    assert world.control("public.a").window == 3


def test_a_hole_met_on_the_way_is_copied_again_only_where_the_definition_says_so(world: World) -> None:
    for run, kind in (("r2", Reconcile.MANUAL), ("r3", Reconcile.AUTO)):
        world.definition = replace(world.definition, source=replace(world.definition.source, reconcile=kind))
        world.source.change("public.a", "public.b")
        decision = world.open(run)
        world.extract(decision.plan, holes=(Hole("overflow", decision.plan.stream[-1], "f1"),))
        world.merge(decision.plan)
        found = find_holes(world.replicator, run, world.told.append)
        assert found == (() if kind is Reconcile.MANUAL else decision.plan.stream[-1:])
        if found:
            assert world.reconcile(run) == world.tables, "b waited for it since the run before"
        blocked = [row.table for row in world.close(run).rows if row.state is TableState.BLOCKED]
        assert blocked == ([] if found else ["public.b"])
        assert world.slot() == 100 + 2 * int(run[1:]) - 2, "the log keeps what the blocked table has not applied"


def test_a_table_is_failing_until_it_has_moved(world: World) -> None:
    world.source.change("public.a")
    for number in (1, 2):
        decision = world.open(f"bad{number}")
        world.extract(decision.plan) if "extract" in decision.follow else None
        problem = Problem("TGT020", "the lake does not answer", do="wait for it")
        failed = TableResult("public.a", Outcome.FAILING, problem=problem)
        world.say(f"bad{number}", "merge", StepKind.MERGE, [failed])
        closing = world.close(f"bad{number}")
        row = closing.rows[0]
        assert (row.state, row.attempts, row.reason) == (TableState.FAILING, number, "the lake does not answer")
        (told,) = closing.problems
        assert told.code == "RUN002" and str(told).count("do: wait for it") == 1
        assert world.slot() == 100
    assert world.run("good").problems == ()
    row = world.replicator.state.tables("shop")["public.a"]
    assert (row.state, row.attempts, row.failing_since, row.error) == (TableState.REPLICATING, 0, "", "")


def test_what_no_retry_cures_is_written_into_the_target_and_waits_for_the_operator(world: World) -> None:
    world.source.change("public.a", "public.b")
    decision = world.open("r2")
    world.extract(decision.plan)
    world.merge(decision.plan, ["public.b"])
    blocked = TableResult("public.a", Outcome.BLOCKED, problem=Problem("SCH001", "a column was renamed", do="resync"))
    world.say("r2", "stage", StepKind.STAGE, [blocked])
    assert [problem.code for problem in world.close("r2").problems] == ["RUN003"]
    assert world.control("public.a").state.name is TableState.BLOCKED
    assert world.slot() == 102
    decision = world.open("r3")
    assert decision.follow == ("close_window",), "no JVM starts for it"
    assert [problem.code for problem in world.close("r3").problems] == ["RUN003"]
    world.ask(CommandKind.RESUME, "public.a")
    assert world.run("r4").problems == ()
    assert world.control("public.a").window == 2


def test_a_commit_that_a_step_reports_and_the_target_does_not_hold_is_not_believed(world: World) -> None:
    world.source.change("public.a")
    decision = world.open("r2")
    world.extract(decision.plan)
    said = TableResult("public.a", Outcome.DONE, 1, {"update": 1}, fence=1, window=2)
    world.say("r2", "merge", StepKind.MERGE, [said])
    closing = world.close("r2")
    assert "that the target does not have" in closing.problems[0].what
    assert world.control("public.a").window == 1


def test_a_run_that_was_not_opened_is_red(world: World) -> None:
    world.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        world.open("r2")
    assert [problem.code for problem in world.close("r2").problems] == ["RUN001"]
    assert world.replicator.state.holder("shop", "stream") is None


def test_an_opening_that_fails_forgets_the_earlier_decision_of_a_cleared_run(world: World) -> None:
    world.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        world.open("r1")
    assert [problem.code for problem in world.close("r1").problems] == ["RUN001"]


def test_a_target_that_does_not_answer_is_the_trouble_of_its_table_and_nothing_is_forgotten(world: World) -> None:
    world.source.change("public.a", "public.b")
    world.folder.joinpath("lake/public_a/locked").write_text("")
    closing = world.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN002", "public.a")]
    assert world.control("public.b").window == 2
    assert world.slot() == 100
    world.folder.joinpath("lake/public_a/locked").unlink()
    assert world.run("r3").problems == ()
    assert world.slot() == 102


def test_nothing_is_forgotten_while_a_table_that_nobody_has_seen_yet_does_not_answer(world: World) -> None:
    world.source.write(tables=[to_plain(schema(table)) for table in (*world.tables, "public.c")])
    locked = world.folder / "lake/public_c/locked"
    locked.parent.mkdir()
    locked.write_text("")
    world.source.change("public.a")
    closing = world.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN002", "public.c")]
    assert (world.control("public.a").window, world.slot()) == (2, 100)
    locked.unlink()
    assert world.run("r3").problems == ()
    assert world.slot() > 100


def test_pause_and_resume_say_why_they_refuse(world: World) -> None:
    paused = world.ask(CommandKind.PAUSE, "public.a", "public.zz")
    world.run("r2")
    done = world.replicator.state.command(paused.id)
    assert done and done.status is CommandStatus.FAILED
    assert done.outcome == "pause: public.a; refused: shop has no table public.zz"
    again = world.ask(CommandKind.PAUSE, "public.a")
    world.run("r3")
    done = world.replicator.state.command(again.id)
    assert done and done.status is CommandStatus.DONE and done.outcome == "pause: nothing to change"


def test_a_backfill_applies_the_windows_of_its_interval_again_and_lands_nothing(world: World) -> None:
    world.source.change("public.a")
    world.run("r2")
    middle = utc_now()
    time.sleep(0.01)
    world.source.change("public.a")
    world.run("r3")
    world.source.change("public.a")
    decision = world.open(RunContext("backfill__1", Mode.REPAIR, ("2020-01-01T00:00:00+00:00", middle)))
    assert decision.follow == ("stage", "close_window")
    assert (decision.plan.repair, decision.plan.extract) == ((1, 2), False)
    world.close("backfill__1")


def test_a_backfill_beside_a_run_waits_and_then_applies_its_windows(world: World) -> None:
    world.source.change("public.a")
    first = world.open("r2")
    repair = RunContext("backfill__1", Mode.REPAIR, ("2020-01-01T00:00:00+00:00", utc_now()))
    assert world.open(repair).wait
    world.spark(first)
    assert world.close("r2").problems == ()
    decision = world.open(repair)
    assert not decision.wait and decision.plan.repair is not None
    assert world.close("backfill__1").problems == ()


def test_a_backfill_before_the_log_names_its_oldest_window(world: World) -> None:
    run = RunContext("backfill__1", Mode.REPAIR, ("2020-01-01T00:00:00+00:00", "2020-01-02T00:00:00+00:00"))
    decision = world.open(run)
    assert decision.stop is not None and decision.stop.code == "LOG006"
    assert decision.stop.found.startswith("oldest window 1, from ")
