"""Runs with errors of single tables, the source, the log, the target or the state store."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.reconcile import find_holes
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable, StagingInvalid
from airflow_cdc_provider.core.log.change_log import Hole, manifest_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Columns, Reconcile, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import utc_now
from tests.provider.run_harness import RunHarness, schema


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("r1").problems == ()
    return harness


def test_a_table_of_another_replicator_is_not_changed_and_the_others_go_on(harness: RunHarness) -> None:
    harness.source.write(tables=[to_plain(schema(table)) for table in (*harness.tables, "public.c")])
    harness.commit("public_c", replace(harness.control("public.a"), table="public.x", replicator="other"))
    harness.source.change("public.a")
    closing = harness.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.c")]
    assert "belongs to another replicator" in closing.problems[0].what
    assert str(closing.problems[0]).count("do:") == 1
    assert harness.control("public.a").window == 2
    assert harness.replicator.targets.only.state("public.c", "public_c").version == 0


def test_after_a_change_of_the_state_store_no_table_moves_until_the_index_is_rebuilt(harness: RunHarness) -> None:
    (harness.folder / "state.db").unlink()
    harness.source.change("public.a")
    decision = harness.open("r2")
    assert decision.follow == ("close_window",)
    assert decision.stop is not None and decision.stop.code == "STA007"
    assert "airflow cdc state rebuild shop" in decision.stop.do
    harness.close("r2")
    assert harness.slot() == 100

    before = harness.control("public.a")
    assert [row.table for row in rebuild_index(harness.replicator, "ann").rows] == list(harness.tables)
    assert harness.control("public.a").fence == before.fence + 1
    assert harness.run("r3").problems == ()
    assert harness.slot() == 101


def test_a_rebuilt_index_has_paused_tables_and_takes_no_table_over_twice(harness: RunHarness) -> None:
    harness.request(CommandKind.PAUSE, "public.a")
    harness.run("r2")
    (harness.folder / "state.db").unlink()
    states = {row.table: row.state for row in rebuild_index(harness.replicator, "ann").rows}
    assert states == {"public.a": TableState.PAUSED, "public.b": TableState.REPLICATING}
    fence = harness.control("public.b").fence
    rebuild_index(harness.replicator, "ann")
    assert harness.control("public.b").fence == fence


def test_a_changed_rule_blocks_its_table_until_a_resync(harness: RunHarness) -> None:
    rule = TableRule("public.a", columns=Columns(exclude=("name",)))
    harness.definition = replace(harness.definition, tables=(rule, *harness.definition.tables))
    harness.source.change("public.a", "public.b")
    closing = harness.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.a")]
    assert closing.problems[0].do.endswith("airflow cdc resync shop --table public.a")
    assert harness.control("public.b").window == 2
    assert harness.slot() == 102, "a blocked table does not delay the acknowledgement, the log keeps its windows"
    harness.request(CommandKind.RESYNC, "public.a")
    assert harness.run("r3").problems == ()
    assert harness.run("r4").problems == ()


def test_a_missing_target_table_blocks_until_a_resync_copies_it(harness: RunHarness) -> None:
    harness.replicator.targets.only.store.delete("public_a")  # type: ignore[attr-defined]
    harness.source.change("public.a")
    closing = harness.run("r2")
    assert ["is missing" in problem.what for problem in closing.problems] == [True]
    harness.request(CommandKind.RESYNC, "public.a")
    decision = harness.open("r3")
    assert decision.plan.copy == ("public.a",)
    harness.spark(decision)
    assert harness.close("r3").problems == ()
    assert harness.replicator.state.pending("shop") == ()


def test_a_lost_position_blocks_every_table_and_acknowledges_nothing(harness: RunHarness) -> None:
    harness.source.write(slot=None)
    closing = harness.run("r2")
    assert {problem.code for problem in closing.problems} == {"SRC030", "RUN003"}
    assert harness.source.read()["slot"] is None
    assert harness.replicator.log.sealed() == 1


def test_windows_in_the_log_are_applied_although_the_position_is_lost(harness: RunHarness) -> None:
    harness.source.change("public.a")
    decision = harness.open("r2")
    harness.extract(decision.plan)
    harness.close("r2", failed=["stage"])
    harness.source.write(slot=None)
    decision = harness.open("r3")
    assert decision.follow == ("stage", "close_window")
    harness.spark(decision)
    harness.close("r3")
    assert harness.control("public.a").window == 2


def test_after_a_lost_position_a_resync_opens_the_stream_and_the_others_keep_a_hole(harness: RunHarness) -> None:
    harness.source.change("public.a")
    harness.source.write(slot=None, end=900)
    harness.request(CommandKind.RESYNC, "public.a")
    closing = harness.run("r2")
    assert harness.control("public.a").window == 2
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.b")]
    assert "hole" in closing.problems[0].what
    manifest = harness.replicator.log.manifest(2)
    assert (manifest.lo, manifest.hi) == ({"slot": "100"}, {"slot": "900"})
    assert {hole.table for hole in manifest.holes} == set(harness.tables)
    harness.request(CommandKind.RESYNC, "public.b")
    assert harness.run("r3").problems == ()


def test_reconcile_auto_copies_every_table_again_after_a_lost_position(harness: RunHarness) -> None:
    source = replace(harness.definition.source, reconcile=Reconcile.AUTO)
    harness.definition = replace(harness.definition, source=source)
    harness.source.write(slot=None, end=900)
    assert harness.run("r2").problems == ()
    assert {harness.control(table).window for table in harness.tables} == {2}
    assert harness.open("r3").follow == ("close_window",)


@pytest.mark.parametrize("reconcile", Reconcile)
def test_a_table_that_the_stream_does_not_carry_is_blocked_and_the_others_go_on(
    harness: RunHarness, reconcile: Reconcile
) -> None:
    source = replace(harness.definition.source, reconcile=reconcile)
    harness.definition = replace(harness.definition, source=source)
    harness.source.write(outside=["public.a"])
    harness.source.change("public.b")
    closing = harness.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN003", "public.a")]
    row = harness.replicator.state.tables(harness.definition.name)["public.a"]
    assert (row.state, row.reason, row.remedy) == (TableState.BLOCKED, "public.a is not carried", "list it")
    assert harness.control("public.b").window == 2
    harness.source.write(outside=[])
    assert harness.run("r3").problems == ()


def test_another_source_stops_the_replicator_and_names_what_changed(harness: RunHarness) -> None:
    harness.source.write(identity={"system": "8"})
    harness.source.change("public.a")
    decision = harness.open("r2")
    assert decision.stop is not None and decision.stop.found == "system 7 → 8"
    assert decision.follow == ("close_window",)
    harness.close("r2")
    assert harness.slot() == 100
    harness.request(CommandKind.RESYNC)
    assert harness.run("r3").problems == ()
    assert harness.replicator.log.manifest(2).epoch == 2


def test_a_new_stream_has_an_epoch_above_those_of_all_copies(
    harness: RunHarness,
) -> None:
    """Although the source is the same: its positions may have gone back."""
    harness.source.write(slot=None, end=50)
    harness.request(CommandKind.RESYNC)
    assert harness.run("r2").problems == ()
    assert harness.replicator.log.manifest(2).epoch == 2
    assert {harness.control(table).epoch for table in harness.tables} == {2}
    shutil.rmtree(harness.replicator.log.store.url(""))
    harness.request(CommandKind.RESYNC)
    assert harness.run("r3").problems == ()
    assert harness.replicator.log.manifest(1).epoch == 3


def test_another_staging_folder_stops_the_replicator(harness: RunHarness) -> None:
    harness.replicator.log.store.delete("LOG")
    harness.source.change("public.a")
    decision = harness.open("r2")
    assert decision.stop is not None and decision.stop.code == "LOG001"
    assert harness.close("r2").problems
    assert harness.slot() == 100


def test_another_manifest_than_the_applied_one_stops_the_replicator(harness: RunHarness) -> None:
    path, log = manifest_path(1), harness.replicator.log
    other = replace(log.manifest(1), sealed_at="2020-01-01T00:00:00Z")
    log.store.write(path, other.encode())
    harness.source.change("public.a")
    decision = harness.open("r2")
    assert decision.stop is not None and decision.stop.code == "LOG003"


def test_a_corrupt_manifest_stops_the_run(harness: RunHarness) -> None:
    harness.replicator.log.store.write(manifest_path(1), b"{}\nsha256 0\n")
    with pytest.raises(StagingInvalid, match="STG002"):
        harness.open("r2")


def test_a_restored_table_is_fenced_and_the_log_is_applied_again(harness: RunHarness) -> None:
    old = harness.control("public.a")
    for kind in (CommandKind.PAUSE, CommandKind.RESUME):
        harness.request(kind, "public.a")
        harness.open("r2")
        harness.close("r2")
    harness.source.change("public.a")
    harness.run("r3")
    token = harness.control("public.a").token
    target = harness.replicator.targets.only
    target.store.write("public_a/restored", b"4")  # type: ignore[attr-defined]
    state_before = target.state("public.a", "public_a")
    assert (state_before.restored, state_before.control, state_before.token) == (True, old, token)
    harness.source.change("public.b")
    decision = harness.open("r4")
    assert harness.control("public.a").token > token
    assert "public.a" in decision.plan.stream
    harness.spark(decision)
    harness.close("r4")
    assert harness.control("public.a").window == 3


def test_a_table_with_a_hole_is_copied_again_only_where_reconcile_is_auto(harness: RunHarness) -> None:
    for run, kind in (("r2", Reconcile.MANUAL), ("r3", Reconcile.AUTO)):
        harness.definition = replace(harness.definition, source=replace(harness.definition.source, reconcile=kind))
        harness.source.change("public.a", "public.b")
        decision = harness.open(run)
        harness.extract(decision.plan, holes=(Hole("overflow", decision.plan.stream[-1], "f1"),))
        harness.merge(decision.plan)
        found = find_holes(harness.replicator, run, harness.log_lines.append)
        assert found == (() if kind is Reconcile.MANUAL else decision.plan.stream[-1:])
        if found:
            assert harness.reconcile(run) == harness.tables, "b has waited for it since the previous run"
        blocked = [row.table for row in harness.close(run).rows if row.state is TableState.BLOCKED]
        assert blocked == ([] if found else ["public.b"])
        assert harness.slot() == 100 + 2 * int(run[1:]) - 2, "the log keeps what the blocked table has not applied"


def test_a_table_is_failing_until_its_cursor_moves(harness: RunHarness) -> None:
    harness.source.change("public.a")
    for number in (1, 2):
        decision = harness.open(f"bad{number}")
        harness.extract(decision.plan) if "extract" in decision.follow else None
        problem = Problem("TGT020", "the lake does not answer", do="wait for it")
        failed = TableResult("public.a", Outcome.FAILING, problem=problem)
        harness.write_result(f"bad{number}", "merge", StepKind.MERGE, [failed])
        closing = harness.close(f"bad{number}")
        row = closing.rows[0]
        assert (row.state, row.attempts, row.reason) == (TableState.FAILING, number, "the lake does not answer")
        (problem,) = closing.problems
        assert problem.code == "RUN002" and str(problem).count("do: wait for it") == 1
        assert harness.slot() == 100
    assert harness.run("good").problems == ()
    row = harness.replicator.state.tables("shop")["public.a"]
    assert (row.state, row.attempts, row.failing_since, row.error) == (TableState.REPLICATING, 0, "", "")


def test_a_blocked_state_is_recorded_in_the_target_and_waits_for_the_operator(harness: RunHarness) -> None:
    harness.source.change("public.a", "public.b")
    decision = harness.open("r2")
    harness.extract(decision.plan)
    harness.merge(decision.plan, ["public.b"])
    problem = Problem("SCH001", "a column was renamed", found="v", do="resync")
    harness.write_result("r2", "stage", StepKind.STAGE, [TableResult("public.a", Outcome.BLOCKED, problem=problem)])
    assert [problem.code for problem in harness.close("r2").problems] == ["RUN003"]
    assert harness.control("public.a").state.name is TableState.BLOCKED
    shown = harness.replicator.state.tables("shop")["public.a"].error
    assert shown.startswith("SCH001 a column was renamed | found: v | do: resync")
    assert harness.slot() == 102
    decision = harness.open("r3")
    assert decision.follow == ("close_window",), "no JVM is started"
    assert [problem.code for problem in harness.close("r3").problems] == ["RUN003"]
    assert harness.replicator.state.tables("shop")["public.a"].error == shown, "later runs know no more"
    harness.request(CommandKind.RESUME, "public.a")
    assert harness.run("r4").problems == ()
    assert harness.control("public.a").window == 2


def test_a_reported_commit_that_is_not_in_the_target_is_an_error(harness: RunHarness) -> None:
    harness.source.change("public.a")
    decision = harness.open("r2")
    harness.extract(decision.plan)
    reported = TableResult("public.a", Outcome.DONE, 1, {"update": 1}, fence=1, window=2)
    harness.write_result("r2", "merge", StepKind.MERGE, [reported])
    closing = harness.close("r2")
    assert "that the target does not have" in closing.problems[0].what
    assert harness.control("public.a").window == 1


def test_a_run_that_was_not_opened_fails(harness: RunHarness) -> None:
    harness.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        harness.open("r2")
    assert [problem.code for problem in harness.close("r2").problems] == ["RUN001"]
    assert harness.replicator.state.holder("shop", "stream") is None


def test_a_failed_opening_drops_the_earlier_decision_of_a_cleared_run(harness: RunHarness) -> None:
    harness.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        harness.open("r1")
    assert [problem.code for problem in harness.close("r1").problems] == ["RUN001"]


def test_a_target_table_that_does_not_answer_fails_alone_and_delays_the_acknowledgement(
    harness: RunHarness,
) -> None:
    harness.source.change("public.a", "public.b")
    harness.folder.joinpath("lake/public_a/locked").write_text("")
    closing = harness.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN002", "public.a")]
    assert harness.control("public.b").window == 2
    assert harness.slot() == 100
    harness.folder.joinpath("lake/public_a/locked").unlink()
    assert harness.run("r3").problems == ()
    assert harness.slot() == 102


def test_nothing_is_acknowledged_while_a_table_without_a_known_state_does_not_answer(harness: RunHarness) -> None:
    harness.source.write(tables=[to_plain(schema(table)) for table in (*harness.tables, "public.c")])
    locked = harness.folder / "lake/public_c/locked"
    locked.parent.mkdir()
    locked.write_text("")
    harness.source.change("public.a")
    closing = harness.run("r2")
    assert [(problem.code, problem.where) for problem in closing.problems] == [("RUN002", "public.c")]
    assert (harness.control("public.a").window, harness.slot()) == (2, 100)
    locked.unlink()
    assert harness.run("r3").problems == ()
    assert harness.slot() > 100


def test_a_refused_pause_or_resume_has_a_reason(harness: RunHarness) -> None:
    paused = harness.request(CommandKind.PAUSE, "public.a", "public.zz")
    harness.run("r2")
    done = harness.replicator.state.command(paused.id)
    assert done and done.status is CommandStatus.FAILED
    assert done.outcome == "pause: public.a; refused: shop has no table public.zz"
    again = harness.request(CommandKind.PAUSE, "public.a")
    harness.run("r3")
    done = harness.replicator.state.command(again.id)
    assert done and done.status is CommandStatus.DONE and done.outcome == "pause: nothing to change"


def test_a_backfill_applies_the_windows_of_its_interval_again_and_lands_nothing(harness: RunHarness) -> None:
    harness.source.change("public.a")
    harness.run("r2")
    middle = utc_now()
    time.sleep(0.01)
    harness.source.change("public.a")
    harness.run("r3")
    harness.source.change("public.a")
    decision = harness.open(RunContext("backfill__1", Mode.REPAIR, ("2020-01-01T00:00:00+00:00", middle)))
    assert decision.follow == ("stage", "close_window")
    assert (decision.plan.repair, decision.plan.extract) == ((1, 2), False)
    harness.close("backfill__1")
    fresh_at = harness.state.tables("shop")["public.a"].fresh_at
    assert fresh_at < decision.at, "a backfill does not read new changes"


def test_a_backfill_beside_a_run_waits_and_then_applies_its_windows(harness: RunHarness) -> None:
    harness.source.change("public.a")
    first = harness.open("r2")
    repair = RunContext("backfill__1", Mode.REPAIR, ("2020-01-01T00:00:00+00:00", utc_now()))
    assert harness.open(repair).wait
    harness.spark(first)
    assert harness.close("r2").problems == ()
    decision = harness.open(repair)
    assert not decision.wait and decision.plan.repair is not None
    assert harness.close("backfill__1").problems == ()


def test_a_backfill_before_the_log_names_its_oldest_window(harness: RunHarness) -> None:
    run = RunContext("backfill__1", Mode.REPAIR, ("2020-01-01T00:00:00+00:00", "2020-01-02T00:00:00+00:00"))
    decision = harness.open(run)
    assert decision.stop is not None and decision.stop.code == "LOG006"
    assert decision.stop.found.startswith("oldest window 1, from ")
