"""The windows, runs and records that a run removes at its end, and those it keeps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.control import retention
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.log.change_log import runs_folder
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from tests.provider.run_harness import LoggedFileTarget, RunHarness, schema
from tests.provider.stopping import Stop


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("r1").problems == ()
    return harness


def test_windows_are_removed_when_every_table_has_applied_them_and_cursors_of_idle_tables_are_moved(
    harness: RunHarness,
) -> None:
    quick = replace(harness.definition.staging, retain=timedelta(0))
    harness.definition = replace(harness.definition, staging=quick)
    for number in range(2, 6):
        harness.source.change("public.a")
        assert harness.run(f"manual__{number}").problems == ()
    log = harness.replicator.log
    assert (log.oldest(), log.sealed()) == (5, 5)
    assert harness.control("public.b").window >= 4, "the cursor of an idle table is moved without data"
    (harness.folder / "state.db").unlink()
    rebuild_index(harness.replicator, "ann")
    harness.source.change("public.a", "public.b")
    assert harness.run("manual__6").problems == (), "removed windows are not needed, even without the index"


def test_windows_are_kept_for_the_retention_of_the_definition(harness: RunHarness) -> None:
    for number in range(2, 5):
        harness.source.change(*harness.tables)
        harness.run(f"manual__{number}")
    assert (harness.replicator.log.oldest(), harness.replicator.log.sealed()) == (1, 4)


def test_a_paused_table_keeps_its_windows(harness: RunHarness) -> None:
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    harness.request(CommandKind.PAUSE, "public.a")
    for number in range(2, 5):
        harness.source.change("public.a")
        harness.run(f"manual__{number}")
    assert harness.replicator.log.oldest() <= 2
    harness.request(CommandKind.RESUME)
    assert harness.run("manual__5").problems == ()
    assert harness.control("public.a").window == 4


@pytest.mark.parametrize("policy", [OnDroppedTable.STOP, OnDroppedTable.DROP])
def test_a_table_that_the_source_hides_for_one_run_keeps_its_windows(
    harness: RunHarness, policy: OnDroppedTable
) -> None:
    harness.definition = replace(
        harness.definition,
        staging=replace(harness.definition.staging, retain=timedelta(0)),
        dropped_tables=policy,
    )
    harness.request(CommandKind.PAUSE, "public.a")
    for number in range(2, 5):
        harness.source.change("public.a", "public.b")
        harness.run(f"manual__{number}")
    tables = harness.source.read()["tables"]
    harness.source.write(tables=[table for table in tables if table["table"] != "public.a"])
    harness.run("manual__5")
    assert harness.replicator.log.oldest() <= 2
    harness.source.write(tables=tables)
    harness.request(CommandKind.RESUME)
    assert harness.run("manual__6").problems == ()
    assert harness.control("public.a").window == 4


def test_a_run_keeps_the_windows_of_tables_that_were_added_since(tmp_path: Path) -> None:
    harness = RunHarness(tmp_path)
    whole = harness.definition
    harness.definition = replace(whole, tables=(TableRule("public.b"),))
    harness.run("manual__1")
    harness.run("manual__2")
    harness.definition = whole
    harness.run("manual__3")
    harness.request(CommandKind.PAUSE, "public.a")
    for number in range(4, 7):
        harness.source.change("public.a", "public.b")
        harness.run(f"manual__{number}")
    harness.definition = replace(whole, staging=replace(whole.staging, retain=timedelta(0)))
    harness.close("manual__2")
    assert harness.replicator.log.oldest() <= 2
    harness.request(CommandKind.RESUME)
    assert harness.run("manual__7").problems == ()


def test_old_runs_and_their_batches_are_removed(harness: RunHarness) -> None:
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    store = harness.replicator.log.store
    harness.request(CommandKind.RESYNC, "public.a")
    for number in range(2, 5):
        harness.source.change("public.a")
        harness.run(f"manual__{number}")
        if number == 2:
            run = harness.replicator.run("manual__2")
            staged, copied = (run.folder(task, 1).step() for task in ("stage", "reconcile.resync"))
            assert staged is not None and copied is not None
            store.write(f"batches/public.a/{staged.attempt}/batch.json", b"{}")
            store.write(f"batches/public.a/{copied.attempt}-audit/batch.json", b"{}")
    runs = store.names(runs_folder(harness.state.owner()))
    assert "manual__4" in runs and "manual__2" not in runs
    assert store.names("batches/public.a") == []


def test_a_run_that_died_before_its_decision_does_not_keep_later_runs(harness: RunHarness) -> None:
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    store = harness.replicator.log.store
    runs = runs_folder(harness.state.owner())
    store.write(f"{runs}/manual__1/plan.json", b"{}")
    for number in range(2, 4):
        harness.source.change("public.a")
        harness.run(f"manual__{number}")
    assert [name for name in store.names(runs) if name.startswith("manual__")] == ["manual__3"]


def test_unused_control_records_are_removed_and_no_fence_is_used_twice(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target keeps only the newest version."""
    monkeypatch.setattr(retention, "CONTROLS_EVERY_WINDOWS", 1)
    monkeypatch.setattr(LoggedFileTarget, "oldest_token", lambda self, table, target: self.state(table, target).token)
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    store, log = harness.replicator.log.store, harness.replicator.log
    for number in range(2, 5):
        harness.source.change("public.a")
        harness.request(CommandKind.PAUSE, "public.b")
        harness.request(CommandKind.RESUME, "public.b")
        assert harness.run(f"manual__{number}").problems == ()
    for table in harness.tables:
        assert len(store.names(f"control/{table}")) == 1
        assert log.control(table, harness.control(table).token) == harness.control(table)
    fences = {table: log.highest_fence(table) for table in harness.tables}
    assert fences["public.b"] > 3
    (harness.folder / "state.db").unlink()
    assert {row.table for row in rebuild_index(harness.replicator, "ann").rows} == set(harness.tables)
    harness.request(CommandKind.RESYNC)
    assert harness.run("manual__5").problems == ()
    assert all(harness.control(table).fence > fence for table, fence in fences.items())


def test_an_error_of_the_cleaning_does_not_fail_the_run(harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer commits to an idle table just before its cursor is moved; another table is blocked."""
    for number in range(2, 4):
        harness.source.change("public.a")
        harness.run(f"manual__{number}")
    harness.source.write(tables=[to_plain(schema(table)) for table in (*harness.tables, "public.c")])
    harness.commit("public_c", replace(harness.control("public.a"), table="public.x", replicator="other"))
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    harness.source.change("public.a")
    harness.spark(harness.open("manual__4"))
    stop = Stop("state.after", harness.folder, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(harness.close, "manual__4")
        stop.wait_until_reached()
        replicator = harness.replicator
        state_before = replicator.targets.only.state("public.b", "public_b")
        commit_fence(replicator, "public.b", "public_b", state_before, "other")
        stop.go()
        problems = closing.result().problems
    assert [(problem.code, problem.where) for problem in problems] == [("RUN003", "public.c")]
    assert [line for line in harness.log_lines if "FEN003" in line and "the next run" in line]
    assert replicator.log.oldest() == 1, "the windows are kept until the cursor of the table is moved"
    assert "manual__2" not in replicator.log.store.names(runs_folder(harness.state.owner())), "the rest is removed"
    harness.source.change("public.a")
    harness.run("manual__5")
    assert replicator.log.oldest() > 1
