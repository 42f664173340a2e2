"""A paused table does nothing until it is resumed; what was requested meanwhile waits visibly."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.control.reconcile import pause_stream
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import CommandLine
from tests.provider.run_harness import RunHarness

PAUSE, RESUME, RESYNC, VERIFY = CommandKind.PAUSE, CommandKind.RESUME, CommandKind.RESYNC, CommandKind.VERIFY


@pytest.fixture(autouse=True)
def copied(harness: RunHarness) -> None:
    assert harness.run("r1").problems == ()


def ended(harness: RunHarness, command: Command) -> Command:
    found = harness.state.command(command.id)
    assert found is not None and found.finished
    return found


def test_a_pause_after_a_resync_that_waits_wins_until_it_is_resumed(harness: RunHarness) -> None:
    resync = harness.request(RESYNC, "public.a")
    harness.request(PAUSE, "public.a")
    floor = harness.control("public.a").attempt
    assert harness.run("r2").problems == ()
    control = harness.control("public.a")
    assert (control.state.name, control.attempt == floor) == (TableState.PAUSED, False), "fenced, not copied"
    assert [one.id for one in harness.state.pending("shop")] == [resync.id]
    assert not dry_run(harness.replicator).has_work, "runs without end would find nothing to do"
    harness.request(RESUME, "public.a")
    assert harness.run("r3").problems == ()
    assert ended(harness, resync).outcome == "copied again: public.a"
    assert harness.control("public.a").attempt == "r3", "the fence that puts it back into the stream"
    assert harness.control("public.a").state.name is TableState.REPLICATING


def test_a_pause_that_comes_after_the_decision_to_copy_wins(harness: RunHarness) -> None:
    resync = harness.request(RESYNC, "public.a")
    assert harness.open("r2").plan.reconcile == ("public.a",)
    submit_command(harness.replicator, PAUSE, ["public.a"], {}, "", "ann")
    assert pause_stream(harness.replicator, "r2", harness.log_lines.append) == ()
    assert harness.close("r2").problems == ()
    assert harness.control("public.a").state.name is TableState.PAUSED
    assert harness.log_lines[-1].startswith("public.a is skipped: it is paused")
    submit_command(harness.replicator, RESUME, ["public.a"], {}, "", "ann")
    assert harness.run("r3").problems == ()
    assert ended(harness, resync).status is CommandStatus.DONE


def test_status_names_the_paused_table_that_a_command_waits_for(cdc: CommandLine, harness: RunHarness) -> None:
    assert cdc("pause", "shop", "--table", "public.a").code == 0
    submitted = cdc("resync", "shop", "--json")
    assert (submitted.body["status"], submitted.body["waits_for"]) == ("pending", ["public.a"])
    assert "it waits until these are resumed: public.a" in cdc("resync", "shop").out
    harness.run("r2")
    shown = cdc("status", "shop", "--json").body
    assert [one["waits_for"] for one in shown["requests"]] == [["public.a"], ["public.a"]]
    assert "command resync of shop: started; it waits until these are resumed: public.a" in cdc("status", "shop").out
    harness.request(VERIFY, "public.a")
    assert cdc("status", "shop", "--json").body["requests"][-1]["waits_for"] == [], "it does not wait"


def test_a_copy_that_a_resync_has_made_is_not_made_again_while_the_command_waits_for_another(
    harness: RunHarness,
) -> None:
    store = harness.replicator.targets.only.store  # type: ignore[attr-defined]
    store.write("public_b/locked", b"")
    resync = harness.request(RESYNC)
    harness.run("r2")
    assert harness.control("public.a").resyncs == (resync.id,)
    harness.request(PAUSE, "public.a")
    harness.run("r3")
    harness.request(RESUME, "public.a")
    harness.source.change("public.a")
    assert harness.open("r4").plan.reconcile == (), "public.a has its copy, public.b does not answer"
    store.delete("public_b/locked")
    harness.request(PAUSE, "public.a")
    assert harness.open("r5").plan.reconcile == ("public.b",)
    harness.run("r5")
    assert ended(harness, resync).outcome == "copied again: public.a, public.b"
    assert harness.control("public.a").state.name is TableState.PAUSED


def test_a_resync_ends_with_the_next_run_if_the_run_that_carried_it_out_has_died(harness: RunHarness) -> None:
    resync = harness.request(RESYNC)
    harness.open("r2")
    assert harness.reconcile("r2") and dry_run(harness.replicator).has_work
    harness.request(PAUSE, "public.a")
    assert harness.run("r3").problems == ()
    assert not dry_run(harness.replicator).has_work
    assert ended(harness, resync).outcome == "copied again: public.a, public.b"
    assert harness.control("public.a").state.name is TableState.PAUSED


def test_a_resync_does_not_end_while_another_run_makes_one_of_its_copies(harness: RunHarness) -> None:
    resync = harness.request(RESYNC, "public.a", "public.b")
    harness.state.claim("shop", "public.b", "r0", 1)
    harness.state.acquire("shop", "copy", "r0", 600)
    assert harness.run("r2").problems == ()
    assert [one.id for one in harness.state.pending("shop")] == [resync.id]


def test_a_comparison_of_paused_copies_ends_and_says_that_nothing_was_compared(harness: RunHarness) -> None:
    harness.request(PAUSE, "public.a")
    verify = harness.request(VERIFY, "public.a")
    harness.source.change("public.b")
    decision = harness.open("r2")
    assert decision.follow == ("extract", "close_window"), "no comparison, and the stream goes on"
    harness.spark(decision)
    assert harness.close("r2").problems == ()
    found = ended(harness, verify)
    assert found.outcome == "nothing was compared: public.a (paused)"
    assert (found.status, found.result["identical"]) == (CommandStatus.FAILED, False)


def test_a_comparison_says_which_copies_it_did_not_compare_and_why(harness: RunHarness) -> None:
    harness.request(PAUSE, "public.a")
    verify = harness.request(VERIFY)
    assert harness.run("r2").problems == ()
    found = ended(harness, verify)
    assert found.outcome == "identical: public.b; not compared: public.a (paused)"
    assert (found.status, found.result["identical"]) == (CommandStatus.DONE, False)
    harness.comparison |= {"identical": False}
    verify = harness.request(VERIFY)
    harness.run("r3")
    assert ended(harness, verify).outcome == "not identical: public.b; not compared: public.a (paused)"


def test_a_comparison_of_a_copy_that_is_being_made_waits_for_it(harness: RunHarness) -> None:
    verify, resync = harness.request(VERIFY, "public.a"), harness.request(RESYNC, "public.a")
    harness.run("r2")
    assert ended(harness, resync).status is CommandStatus.DONE
    assert [one.id for one in harness.state.pending("shop")] == [verify.id]
    harness.run("r3")
    assert ended(harness, verify).outcome == "identical"
