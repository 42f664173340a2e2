"""First copies from the command line: their progress, and their pause."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_cdc_provider.connectors.copied.kept_copies import KeptCopy, basis_of, kept_copy_path, kept_splits_folder
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.decisions.steps import Step, StepKind
from airflow_cdc_provider.core.log.copy_progress import (
    COPIES,
    CopyProgress,
    Progress,
    copy_folder,
    paused_path,
    progress_path,
)
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from tests.provider.command_line import CommandLine, as_listed
from tests.provider.run_harness import RunHarness

A = "public.a"


def states(cdc: CommandLine) -> dict[str, str]:
    return {table["table"]: table["state"] for table in cdc("status", "shop", "--json").body["tables"]}


def test_status_shows_how_far_a_copy_is_and_how_long_it_takes(cdc: CommandLine, harness: RunHarness) -> None:
    decision = as_listed(harness).open("r1")
    progress = CopyProgress("r1", utc_now(), 2.0, Progress(600, of=1000))
    store = harness.replicator.log.store
    store.write(progress_path(A), json.dumps(to_plain(progress)).encode())
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["state"], one["copying"]["progress"]["rows"], other["copying"]) == ("snapshotting", 600, None)
    assert one["copying"]["seconds_left"] == 400 / 300
    assert "copying: 600 rows, 300 rows/s, 60% done, 1 s left" in cdc("status").out
    older = CopyProgress("r1", "2026-01-01T00:00:00+00:00", 2.0, Progress(600))
    store.write(progress_path(A), json.dumps(to_plain(older)).encode())
    assert "copying: 600 rows, 300 rows/s" in (out := cdc("status").out) and "s ago" in out
    harness.spark(decision)
    harness.close("r1")
    assert cdc("status", "shop", "--json").body["tables"][0]["copying"] is None


def test_a_first_copy_is_paused_until_it_is_resumed(cdc: CommandLine, harness: RunHarness) -> None:
    as_listed(harness).open("r1")
    harness.close("r1", ["snapshot"])
    assert cdc("pause", "shop", "--table", A, "--reason", "month end").code == 0
    assert states(cdc) == {A: "paused", "public.b": "failing"}
    assert "month end" in (out := cdc("status").out) and f"airflow cdc resume shop --table {A}" in out
    decision = harness.open("r2")
    assert decision.plan.copy == ("public.b",)
    harness.spark(decision)
    harness.close("r2")
    assert states(cdc) == {A: "paused", "public.b": "replicating"}
    assert cdc("pause", "shop", "--table", A).code == 0, "it is paused already"
    assert cdc("resume", "shop", "--table", A).code == 0
    assert states(cdc)[A] == "pending"
    assert harness.run("r3").problems == ()
    assert states(cdc) == {A: "replicating", "public.b": "replicating"}
    assert cdc("resume", "shop", "--table", A).code == 0


def test_a_pause_that_comes_with_the_commit_of_the_copy_is_not_lost(cdc: CommandLine, harness: RunHarness) -> None:
    decision = as_listed(harness).open("r1")
    harness.spark(decision)
    pause = State(TableState.PAUSED, utc_now(), "month end", "airflow cdc resume shop")
    harness.replicator.log.store.write(paused_path(A), json.dumps(to_plain(pause)).encode())
    harness.close("r1")
    harness.run("r2")
    assert states(cdc) == {A: "paused", "public.b": "replicating"}
    assert harness.control(A).state.reason == "month end"
    assert not harness.replicator.log.store.exists(paused_path(A))
    harness.run("r3")
    assert states(cdc)[A] == "paused"


def begin_copy(harness: RunHarness) -> None:
    """A run whose first copy of A was interrupted after its first split."""
    decision = harness.open("r1")
    harness.close("r1", ["snapshot"])
    (task, _) = decision.plan.tables
    step = Step(StepKind.SNAPSHOT, harness.definition, "r1", "a1", "", "", "", "", 1, {}, ())
    copy = Copy("f", {}, task.schema, SplitRead(("s1",), lasting=True), 9)
    begun = KeptCopy("c1", utc_now(), 1, basis_of(step, task), copy)
    store = harness.replicator.log.store
    store.write(kept_copy_path(A), begun.encode())
    store.write(f"{kept_splits_folder(A, 'c1', 'files')}/0.parquet", b"rows in clear")


def test_the_windows_after_the_anchor_of_a_copy_that_was_begun_are_kept(harness: RunHarness) -> None:
    begin_copy(harness)
    for run in ("r2", "r3"):
        harness.source.change("public.b")
        harness.extract(harness.open(run).plan)
        harness.close(run, ["snapshot"])
    harness.open("r4")
    claims = {claim.table: claim.sealed_window for claim in harness.state.claims("shop")}
    assert claims == {A: 1, "public.b": 3}


@pytest.mark.parametrize("leaves", [True, False])
def test_what_a_first_copy_kept_is_removed_once_the_log_does_not_reach_back_to_its_anchor(
    cdc: CommandLine, harness: RunHarness, leaves: bool
) -> None:
    """Also of a table that has left the YAML: no attempt would remove it. A pause stays while it has the table."""
    begin_copy(harness)
    store = harness.replicator.log.store
    assert cdc("pause", "shop", "--table", A).code == 0
    kept = sorted(file.path for file in store.files(copy_folder(A)))
    if leaves:
        harness.definition = replace(harness.definition, tables=(TableRule("public.b"),))
    harness.run("r2")
    assert sorted(file.path for file in store.files(copy_folder(A))) == kept, "the log reaches back"
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    for number in range(3, 6):
        harness.source.change("public.b")
        harness.run(f"r{number}")
    assert harness.replicator.log.oldest() > 1
    left = {file.path for file in store.files(copy_folder(A))}
    assert left == (set() if leaves else {kept_copy_path(A), paused_path(A)})
    assert not leaves or store.names(COPIES) == []


def test_windows_after_the_anchor_of_a_copy_are_applied_whichever_the_run_has_read(
    cdc: CommandLine, harness: RunHarness
) -> None:
    """A feed has the table from an earlier window on than that of every other cursor."""
    harness.run("r1")
    for number in (2, 3):
        harness.source.change("public.a", "public.b")
        harness.run(f"r{number}")
    shutil.rmtree(harness.folder / "lake/public_a")
    assert cdc("resync", "shop", "--table", A, "--yes", "shop").code == 0
    decision = harness.open("r4")
    assert decision.plan.copy == (A,)
    harness.copy(decision.plan, "snapshot", decision.plan.copy, TableState.REPLICATING, window=1)
    harness.close("r4")
    assert harness.state.tables("shop")[A].passed == 1
    harness.run("r5")
    assert harness.control(A).window == 3
