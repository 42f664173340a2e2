"""Whole runs of a replicator, with steps that count rows only."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.control import settled_tables
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.control.reconcile import find_holes, pause_stream
from airflow_cdc_provider.core.columns.functions import hash_key_id
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from tests.provider.run_harness import RunHarness


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    return RunHarness(tmp_path)


def test_the_first_run_opens_the_stream_and_copies_every_table(harness: RunHarness) -> None:
    decision = harness.open("r1")
    assert decision.follow == ("snapshot", "close_window")
    assert decision.plan.copy == harness.tables
    assert (decision.plan.sealed, decision.plan.lo) == (1, {"slot": "100"})
    harness.spark(decision)
    closing = harness.close("r1")
    assert closing.problems == ()
    assert [(row.state, row.rows) for row in closing.rows] == [(TableState.REPLICATING, 10)] * 2


def test_changes_are_acknowledged_after_they_are_landed_and_merged(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.change("public.a", "public.a")
    assert harness.slot() == 100
    decision = harness.open("r2")
    assert decision.follow == ("extract", "close_window")
    harness.spark(decision)
    assert harness.slot() == 100
    closing = harness.close("r2")
    assert harness.slot() == 102
    assert closing.moved == {"public.a": "public_a"}
    assert [row.changes for row in closing.rows] == [{"updated": 2}, {}]


def test_a_run_without_work_follows_only_close_window(harness: RunHarness) -> None:
    harness.run("r1")
    for number in range(3):
        assert harness.open(f"idle{number}").follow == ("close_window",)
        assert harness.close(f"idle{number}").problems == ()


def test_an_idle_run_does_not_change_the_time_of_the_last_read_of_a_target(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.run("r1")
    harness.run("r2")
    seen = {table: row.seen_at for table, row in harness.replicator.state.tables("shop").items()}
    harness.run("idle")
    assert {table: row.seen_at for table, row in harness.replicator.state.tables("shop").items()} == seen
    monkeypatch.setattr(settled_tables, "SETTLED_FOR", timedelta(0))
    harness.open("later")
    after = harness.replicator.state.tables("shop")
    assert all(after[table].seen_at > at for table, at in seen.items())


def test_a_plan_names_the_key_of_hashes(harness: RunHarness) -> None:
    key = b"1" * 16
    decision = open_window(replace(harness.replicator, hash_key=key), RunContext("r1"), harness.log_lines.append)
    assert decision.plan.hash_key_id == hash_key_id(key)


def test_another_source_than_that_of_the_run_is_not_acknowledged(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.change("public.a")
    decision = harness.open("r2")
    harness.spark(decision)
    before = harness.source.read()["slot"]
    harness.source.write(identity={"system": "8"})
    assert harness.close("r2").acknowledged == 0 and harness.source.read()["slot"] == before
    assert any("another source" in line for line in harness.log_lines)
    harness.source.write(identity={"system": "7"})
    harness.run("r3")
    assert harness.source.read()["slot"] > before


def test_an_idle_source_is_acknowledged_by_an_empty_window_without_a_step(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.write(end=500)
    decision = harness.open("r2")
    assert decision.follow == ("close_window",)
    assert harness.slot() == 100
    harness.close("r2")
    assert harness.slot() == 500
    assert harness.replicator.log.sealed() == 2


def test_a_table_behind_the_log_is_staged_without_reading_the_source(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.change("public.a")
    decision = harness.open("r2")
    harness.extract(decision.plan)
    closing = harness.close("r2", failed=["stage"])
    assert [problem.code for problem in closing.problems] == ["RUN005", "RUN002", "RUN002"]
    assert harness.slot() == 100
    decision = harness.open("r3")
    assert decision.follow == ("stage", "close_window")
    harness.spark(decision)
    assert harness.close("r3").problems == ()
    assert harness.slot() == 101


def test_a_second_run_leaves_the_lease_to_the_first_and_succeeds(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.change("public.a")
    first = harness.open("r2")
    second = harness.open("r3")
    assert second.follow == ("close_window",)
    assert "another run has the lease of the stream lane" in " ".join(second.notes)
    fresh_at = harness.state.tables("shop")["public.a"].fresh_at
    assert harness.close("r3").problems == ()
    assert harness.state.tables("shop")["public.a"].fresh_at == fresh_at, "it has not read the change"
    harness.spark(first)
    assert harness.close("r2").problems == ()
    assert harness.slot() == 101


@pytest.mark.parametrize("read", ["nothing", "a window without records"])
def test_tables_are_not_fresher_while_the_source_is_not_read_to_its_end(harness: RunHarness, read: str) -> None:
    harness.run("r1")
    before = {table: row.fresh_at for table, row in harness.state.tables("shop").items()}
    harness.source.change("public.a")
    plan = harness.open("r2").plan
    if read != "nothing":
        harness.extract(replace(plan, limit=plan.lo), cut="size")
    harness.close("r2")
    assert {table: row.fresh_at for table, row in harness.state.tables("shop").items()} == before
    harness.run("r3")
    after = harness.state.tables("shop")
    assert all(after[table].fresh_at > at for table, at in before.items())


def test_a_long_copy_does_not_stop_the_stream_of_other_tables(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.write(
        tables=[*harness.source.read()["tables"], {**harness.source.read()["tables"][0], "table": "public.c"}]
    )
    copying = harness.open("r2")
    assert copying.follow == ("snapshot", "close_window")
    harness.source.change("public.a", "public.c")
    meanwhile = harness.open("r3")
    assert meanwhile.follow == ("extract", "close_window")
    assert meanwhile.plan.copy == ()
    harness.spark(meanwhile)
    assert harness.close("r3").problems == ()
    harness.spark(copying)
    assert harness.close("r2").problems == ()
    assert harness.control("public.c").window == 2


def test_a_pause_is_a_fence_in_the_target_until_resume(harness: RunHarness) -> None:
    harness.run("r1")
    before = harness.control("public.a")
    command = harness.request(CommandKind.PAUSE, "public.a")
    harness.source.change("public.a", "public.b")
    assert harness.run("r2").problems == ()
    paused = harness.control("public.a")
    assert (paused.state.name, paused.window) == (TableState.PAUSED, before.window)
    assert paused.token > before.token
    done = harness.replicator.state.command(command.id)
    assert done and done.outcome == "pause: public.a"
    assert harness.slot() == 102, "the log keeps what a paused table needs"

    harness.request(CommandKind.RESUME)
    decision = harness.open("r3")
    assert decision.follow == ("stage", "close_window")
    harness.spark(decision)
    assert harness.close("r3").problems == ()
    assert (harness.control("public.a").window, harness.control("public.a").state.name) == (2, TableState.REPLICATING)


def test_a_run_that_moved_tables_publishes_their_cut(harness: RunHarness) -> None:
    def cut() -> Cut | None:
        file = harness.folder / "lake/_cuts.json"
        return from_plain(Cut, json.loads(file.read_text())) if file.exists() else None

    harness.run("r1")
    harness.source.change("public.a")
    harness.run("r2")
    first = cut()
    assert first is not None and first.window == 2
    assert [(one.target, one.window) for one in first.tables] == [("public_a", 2), ("public_b", 1)]
    harness.request(CommandKind.PAUSE, "public.b")
    harness.source.change("public.a", "public.b")
    harness.run("r3")
    second = cut()
    assert second is not None and [(one.target, one.window) for one in second.tables] == [("public_a", 3)]
    harness.run("r4")
    assert cut() == second, "nothing moved"
    assert harness.log_lines[-1] == "published a cut of 1 tables at window 3"


def test_an_unfinished_rewind_is_finished_by_the_next_run(harness: RunHarness) -> None:
    """Also where the request is lost with the state store: the table records the version."""
    harness.run("r1")
    harness.source.change("public.a")
    harness.run("r2")
    state_before = harness.replicator.targets.only.state("public.a", "public_a")
    assert state_before.control is not None and state_before.control.window == 2
    past = harness.replicator.targets.only.version_at_or_before("public.a", "public_a", 1)
    assert past is not None
    going = State(TableState.REWINDING, utc_now(), "back to window 1", version=past.version)
    harness.replicator.targets.only.fence("public_a", state_before, state_before.control.fenced(going))
    harness.source.change("public.b")
    assert harness.run("r3").problems == ()
    control = harness.control("public.a")
    assert (control.window, control.state.name, control.state.reason) == (3, TableState.REPLICATING, "back to window 1")
    assert [n.detail["window"] for n in harness.replicator.state.audit("shop", 9) if n.action == "rewind"] == [1]


def test_a_resyncing_table_leaves_the_stream_and_returns_after_the_copy(harness: RunHarness) -> None:
    harness.run("r1")
    command = harness.request(CommandKind.RESYNC, "public.b")
    harness.source.change("public.a", "public.b")
    decision = harness.open("r2")
    assert decision.follow == ("extract", "reconcile.pause_stream", "close_window")
    assert (decision.plan.stream, decision.plan.reconcile) == (("public.a",), ("public.b",))
    harness.spark(decision)
    assert harness.reconcile("r2") == ("public.b",)
    assert harness.close("r2").problems == ()
    assert (harness.control("public.b").window, harness.control("public.b").state.name) == (2, TableState.REPLICATING)
    done = harness.replicator.state.command(command.id)
    assert done and done.outcome == "copied again: public.b"
    assert harness.open("r3").follow == ("close_window",)


def test_a_resync_that_crashed_continues_in_the_next_run(harness: RunHarness) -> None:
    harness.run("r1")
    command = harness.request(CommandKind.RESYNC, "public.b")
    harness.open("r2")
    pause_stream(harness.replicator, "r2", harness.log_lines.append)
    closing = harness.close("r2", failed=["reconcile.resync"])
    assert closing.problems
    assert [pending.id for pending in harness.replicator.state.pending("shop")] == [command.id]
    decision = harness.open("r3")
    assert decision.plan.reconcile == ("public.b",)
    harness.reconcile("r3")
    assert harness.close("r3").problems == ()
    assert harness.replicator.state.pending("shop") == ()


def test_verify_is_a_run_of_its_own_and_ends_its_request(harness: RunHarness) -> None:
    harness.run("r1")
    command = harness.request(CommandKind.VERIFY)
    harness.source.change("public.a")
    decision = harness.open("r2")
    assert decision.follow == ("verify", "close_window")
    harness.spark(decision)
    assert harness.close("r2").problems == ()
    done = harness.replicator.state.command(command.id)
    assert done and done.result["identical"] is True
    assert [table["target_rows"] for table in done.result["tables"]] == [10, 10]
    assert done.outcome == "identical"


def test_the_comparison_of_a_source_without_exact_snapshots_is_marked_inexact(harness: RunHarness) -> None:
    harness.run("r1")
    harness.comparison = {**harness.comparison, "inexact": True}
    command = harness.request(CommandKind.VERIFY)
    assert harness.run("r2").problems == ()
    done = harness.replicator.state.command(command.id)
    assert done and done.outcome.startswith("identical; inexact")
    assert all(table["inexact"] for table in done.result["tables"])


def test_the_lease_of_the_stream_is_free_while_the_copy_of_the_same_run_continues(harness: RunHarness) -> None:
    harness.run("r1")
    first = harness.source.read()["tables"][0]
    harness.source.write(tables=[*harness.source.read()["tables"], {**first, "table": "public.c"}])
    harness.source.change("public.a")
    decision = harness.open("r2")
    assert decision.follow == ("snapshot", "extract", "close_window")
    harness.extract(decision.plan)
    harness.merge(decision.plan)
    find_holes(harness.replicator, "r2", harness.log_lines.append)
    harness.source.change("public.a")
    meanwhile = harness.open("r3")
    assert meanwhile.follow == ("extract", "close_window")
    harness.spark(meanwhile)
    assert harness.close("r3").problems == ()
    harness.copy(decision.plan, "snapshot", decision.plan.copy, TableState.REPLICATING)
    assert harness.close("r2").problems == ()
    assert harness.slot() == 102
