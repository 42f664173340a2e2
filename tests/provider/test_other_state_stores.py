"""A second state store beside the one that the tables belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.control.answers import answer_open_question
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.control.quarantine_commands import decide_records
from airflow_cdc_provider.control.reconcile import pause_stream, resume_stream
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.state.store import StateStore
from tests.provider.bad_records import carry, put_aside
from tests.provider.run_harness import RunHarness
from tests.provider.waiting_table import QUESTION, ask

A, B = "public.a", "public.b"


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("r1").problems == ()
    return harness


@pytest.fixture
def other(harness: RunHarness) -> RunHarness:
    """The same replicator in a process that has another state store."""
    other = RunHarness(harness.folder)
    other.state = StateStore(f"sqlite:///{harness.folder}/other.db")
    return other


@pytest.mark.parametrize("kind", [CommandKind.PAUSE, CommandKind.REWIND])
def test_a_command_does_not_change_a_copy_of_another_state_store(
    harness: RunHarness, other: RunHarness, kind: CommandKind
) -> None:
    harness.source.change(A)
    harness.run("r2")
    before = harness.control(A)
    arguments = {"to": "1"} if kind is CommandKind.REWIND else {}
    command = submit_command(other.replicator, kind, (A,), arguments, "", "ann")
    assert command.status is CommandStatus.FAILED
    assert command.outcome == f"{kind}: nothing to change; refused: {A} belongs to another state store"
    [ended] = command.result["tables"]
    assert ended["problem"]["code"] == "STA007"
    assert harness.control(A) == before
    assert other.state.tables("shop") == {}
    assert harness.run("r3").problems == ()


def test_no_process_fences_a_copy_of_another_state_store(harness: RunHarness, other: RunHarness) -> None:
    paused = State(TableState.PAUSED, utc_now())
    current = other.replicator.targets.state(A, "public_a")
    with pytest.raises(ForeignTarget, match="STA007"):
        commit_fence(other.replicator, A, "public_a", current, "ann", paused)
    assert harness.control(A) == current.control
    rebuild_index(other.replicator, "ann")
    assert harness.control(A).owner == other.state.owner()
    with pytest.raises(ForeignTarget, match="STA007"):
        commit_fence(harness.replicator, A, "public_a", harness.replicator.targets.state(A, "public_a"), "ann", paused)


def test_a_resync_leaves_out_a_copy_that_another_state_store_took_over(harness: RunHarness, other: RunHarness) -> None:
    harness.request(CommandKind.RESYNC, A)
    harness.open("r2")
    rebuild_index(other.replicator, "bob")
    taken = harness.control(A)
    assert harness.reconcile("r2") == ()
    assert harness.control(A) == taken
    assert harness.state.claims("shop") == ()


def test_the_other_tables_are_resumed_beside_a_copy_that_another_state_store_took_over(
    harness: RunHarness, other: RunHarness
) -> None:
    harness.request(CommandKind.RESYNC, A, B)
    plan = harness.open("r2").plan
    paused = pause_stream(harness.replicator, "r2", harness.log_lines.append)
    harness.copy(plan, "reconcile.resync", paused, None)
    current = other.replicator.targets.state(A, "public_a")
    taken = commit_fence(other.replicator, A, "public_a", current, "bob", owner=other.state.owner())
    assert resume_stream(harness.replicator, "r2", harness.log_lines.append) == (B,)
    assert harness.control(A) == taken
    assert harness.control(B).state.name is TableState.REPLICATING
    assert harness.state.claims("shop") == ()


@pytest.mark.parametrize("kind", [CommandKind.RESYNC, CommandKind.VERIFY])
def test_a_command_that_no_run_would_see_is_refused(harness: RunHarness, other: RunHarness, kind: CommandKind) -> None:
    with pytest.raises(ForeignTarget, match=r"STA007.*connection cdc_state"):
        submit_command(other.replicator, kind, (A,), {}, "", "ann")
    assert other.state.pending("shop") == ()
    assert submit_command(harness.replicator, kind, (A,), {}, "", "ann").status is CommandStatus.PENDING
    rebuild_index(other.replicator, "ann")
    assert submit_command(other.replicator, kind, (A,), {}, "", "ann").status is CommandStatus.PENDING


@pytest.mark.parametrize("kind", [CommandKind.REPLAY, CommandKind.DISCARD])
def test_no_decision_is_written_about_a_record_of_a_copy_of_another_state_store(
    harness: RunHarness, other: RunHarness, kind: CommandKind
) -> None:
    put_aside(harness, "one")
    harness.commit("public_a", harness.control(A).fenced(carry=carry(harness, "one"), attempt="merge"))
    with pytest.raises(ForeignTarget, match=r"STA007.*connection cdc_state"):
        decide_records(other.replicator, kind, ["one"], [], {}, "old data", "ann", "")
    assert harness.replicator.log.decisions() == []
    assert other.state.audit("shop", 10) == ()
    assert decide_records(harness.replicator, kind, ["one"], [], {}, "old data", "ann", "").command


def test_no_question_about_a_copy_of_another_state_store_is_answered(harness: RunHarness, other: RunHarness) -> None:
    ask(harness)
    with pytest.raises(ForeignTarget, match=r"STA007.*connection cdc_state"):
        answer_open_question(other.replicator, QUESTION, Answer.RESYNC, "ann", "")
    assert harness.replicator.log.decisions() == []
    assert answer_open_question(harness.replicator, QUESTION, Answer.RESYNC, "ann", "").question == QUESTION.id


def test_a_command_before_the_first_copy_is_of_any_state_store(tmp_path: Path) -> None:
    harness = RunHarness(tmp_path)
    assert submit_command(harness.replicator, CommandKind.RESYNC, (A,), {}, "", "ann").status is CommandStatus.PENDING
