"""Several decisions about bad records, their repetitions, and the runs that carry them out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.cli import quarantine as cli_quarantine
from airflow_cdc_provider.cli import runs as cli_runs
from airflow_cdc_provider.cli import table_commands as cli_table_commands
from airflow_cdc_provider.control.quarantine_commands import decide_records
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.control.table_rows import blocked_row
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import KeyUsed, Problem
from airflow_cdc_provider.core.log.change_log import quarantine_path
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import utc_now
from tests.provider.bad_records import TABLE, carry, put_aside, staged_and_merged, with_bad_records
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness


@pytest.fixture
def quarantined(harness: RunHarness) -> RunHarness:
    return with_bad_records(harness)


def decided(harness: RunHarness, kind: CommandKind, by: str, **values: str) -> Command:
    command = decide_records(harness.replicator, kind, ["one"], [], values, "", by, "").command
    assert command is not None
    return command


def outcome_of(harness: RunHarness, command: Command) -> tuple[CommandStatus, str]:
    now = harness.state.command(command.id)
    assert now is not None
    return now.status, now.outcome


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((CommandKind.REPLAY, {"name": "a"}), (CommandKind.DISCARD, {})),
        ((CommandKind.DISCARD, {}), (CommandKind.REPLAY, {"name": "a"})),
        ((CommandKind.REPLAY, {"name": "a"}), (CommandKind.REPLAY, {"name": "b"})),
    ],
    ids=["replay, discard", "discard, replay", "two values"],
)
def test_of_two_decisions_about_a_record_only_the_newer_is_carried_out(
    quarantined: RunHarness,
    first: tuple[CommandKind, dict[str, str]],
    second: tuple[CommandKind, dict[str, str]],
) -> None:
    earlier = decided(quarantined, first[0], "ann", **first[1])
    later = decided(quarantined, second[0], "bob", **second[1])
    assert earlier.id != later.id
    quarantined.open("r2")
    staged_and_merged(quarantined, "r2", "two")
    quarantined.close("r2")
    status, outcome = outcome_of(quarantined, earlier)
    assert status is CommandStatus.FAILED and outcome.startswith(f"one: the {second[0]} of bob at 2")
    assert outcome_of(quarantined, later) == (CommandStatus.DONE, f"{second[0]}: one")


def test_a_decision_that_came_after_its_record_was_applied_is_not_called_carried_out(quarantined: RunHarness) -> None:
    replay = decided(quarantined, CommandKind.REPLAY, "ann", name="a")
    (decision,) = quarantined.replicator.log.decisions()
    quarantined.open("r2")
    discard = decided(quarantined, CommandKind.DISCARD, "bob")
    staged_and_merged(quarantined, "r2", "two", decided={"one": decision.id})
    quarantined.close("r2")
    assert outcome_of(quarantined, replay) == (CommandStatus.DONE, "replay: one")
    quarantined.open("r3")
    staged_and_merged(quarantined, "r3", "two")
    quarantined.close("r3")
    status, outcome = outcome_of(quarantined, discard)
    assert status is CommandStatus.FAILED and outcome.startswith("one: the replay of ann at 2")


def test_a_decision_that_waits_for_a_copy_is_carried_out_for_the_same_records_again(quarantined: RunHarness) -> None:
    harness = quarantined
    tables = (TABLE, "public.b")
    first = harness.request(CommandKind.REPLAY, *tables, records=["one", "one"])
    harness.request(CommandKind.PAUSE, "public.b")
    harness.open("r2")
    staged_and_merged(harness, "r2", "one")
    harness.close("r2")
    found = harness.state.command(first.id)
    assert found is not None and not found.finished and found.ended == {TABLE: "carried out"}
    bad = harness.replicator.log.bad_record(TABLE, "one")
    assert bad is not None
    harness.replicator.log.store.create(quarantine_path("public.b", "one"), replace(bad, table="public.b").encode())
    record = harness.control("public.b").fenced(carry=carry(harness, "one"), attempt="merge")
    harness.commit("public_b", record)
    again = decide_records(harness.replicator, CommandKind.REPLAY, ["one"], [], {}, "", "ann", "")
    assert again.command is not None and again.command.tables == tables
    assert again.command.id != first.id, "the first one has ended for public.a"


def test_a_decision_waits_for_a_copy_that_was_resumed_during_the_run(quarantined: RunHarness) -> None:
    harness = quarantined
    harness.commit("public_b", harness.control("public.b").fenced(carry=carry(harness, "one")))
    replay = harness.request(CommandKind.REPLAY, TABLE, "public.b", records=["one"])
    submit_command(harness.replicator, CommandKind.PAUSE, ["public.b"], {}, "", "ann")
    assert harness.open("r2").plan.stream == (TABLE,)
    submit_command(harness.replicator, CommandKind.RESUME, ["public.b"], {}, "", "ann")
    staged_and_merged(harness, "r2")
    assert harness.close("r2").problems == ()
    now = harness.state.command(replay.id)
    assert now is not None and not now.finished and now.ended.keys() == {TABLE}
    assert harness.open("r3").plan.commands == (replay.id,)


def test_a_decision_with_other_values_is_not_lost_while_a_run_carries_out_the_first_one(
    quarantined: RunHarness,
) -> None:
    replicator = quarantined.replicator
    first = decide_records(replicator, CommandKind.REPLAY, ["one"], [], {"id": "7"}, "", "ann", "")
    assert first.command is not None
    quarantined.open("r2")
    replicator.state.start(first.command.id, "r2")
    again = decide_records(replicator, CommandKind.REPLAY, ["one"], [], {"id": "8"}, "", "ann", "")
    assert again.command is not None and again.command.id != first.command.id


def a_new_record(harness: RunHarness) -> None:
    put_aside(harness, "three", window=9)


def test_a_key_of_another_decision_decides_nothing(quarantined: RunHarness) -> None:
    replicator = quarantined.replicator
    decide_records(replicator, CommandKind.DISCARD, ["one"], [], {}, "", "ann", "a-key")
    decided = replicator.log.decisions()
    for kind, ids, tables in (
        (CommandKind.DISCARD, ["two"], []),
        (CommandKind.DISCARD, [], [TABLE]),
        (CommandKind.REPLAY, ["one"], []),
    ):
        with pytest.raises(KeyUsed, match="CMD002"):
            decide_records(replicator, kind, ids, tables, {}, "", "ann", "a-key")
    submit_command(replicator, CommandKind.VERIFY, [TABLE], {}, "key-of-verify", "ann")
    with pytest.raises(KeyUsed, match="CMD002"):
        decide_records(replicator, CommandKind.DISCARD, ["two"], [], {}, "", "ann", "key-of-verify")
    assert replicator.log.decisions() == decided


def test_a_key_of_a_replay_with_other_values_decides_nothing(quarantined: RunHarness) -> None:
    replicator = quarantined.replicator
    first = decide_records(replicator, CommandKind.REPLAY, ["one"], [], {"name": "geheim"}, "", "ann", "a-key")
    again = decide_records(replicator, CommandKind.REPLAY, ["one"], [], {"name": "geheim"}, "", "ann", "a-key")
    assert again.command == first.command and [case.record.id for case in again.cases] == ["one"]
    with pytest.raises(KeyUsed, match="CMD002"):
        decide_records(replicator, CommandKind.REPLAY, ["one"], [], {"name": "other"}, "", "ann", "a-key")
    (decision,) = replicator.log.decisions()
    assert decision.values == {"name": "geheim"} and "geheim" not in str(first.command and first.command.arguments)


def test_a_repetition_does_not_decide_about_a_record_that_came_since(quarantined: RunHarness) -> None:
    replicator = quarantined.replicator
    first = decide_records(replicator, CommandKind.DISCARD, [], [TABLE], {}, "", "ann", "a-key")
    a_new_record(quarantined)
    again = decide_records(replicator, CommandKind.DISCARD, [], [TABLE], {}, "", "ann", "a-key")
    assert again.command == first.command and [case.record.id for case in again.cases] == ["one", "two"]
    assert sorted(one.record for one in replicator.log.decisions()) == ["one", "two"]
    other = decide_records(replicator, CommandKind.DISCARD, [], [TABLE], {}, "", "ann", "another-key")
    assert {case.record.id for case in other.cases} == {"one", "two", "three"}


def test_a_repetition_after_its_run_is_the_first_command(quarantined: RunHarness) -> None:
    replicator = quarantined.replicator
    first = decide_records(replicator, CommandKind.DISCARD, [], [TABLE], {}, "", "ann", "a-key")
    quarantined.open("r2")
    staged_and_merged(quarantined, "r2")
    quarantined.close("r2")
    a_new_record(quarantined)
    again = decide_records(replicator, CommandKind.DISCARD, [], [TABLE], {}, "", "ann", "a-key")
    assert first.command and again.command and again.command.id == first.command.id and again.command.finished
    assert len(replicator.log.decisions()) == 2


def blocked_by_its_record(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    put_aside(harness, "one", window=2)
    blocked = replace(harness.control(TABLE).state, name=TableState.BLOCKED, reason="a record", remedy="decide")
    harness.commit("public_a", harness.control(TABLE).fenced(blocked))
    assert cdc("state", "rebuild", "shop").code == 0


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those that a command triggers. Each has ended at once."""
    triggered: list[str] = []
    monkeypatch.setattr(cli_runs, "trigger_run", lambda name: triggered.append(name) or f"run {len(triggered)}")
    monkeypatch.setattr(cli_runs, "has_ended", lambda name, run_id: True)
    monkeypatch.setattr(cli_runs, "POLL_S", 0.0)
    for module in (cli_quarantine, cli_table_commands):
        monkeypatch.setattr(module, "require_runnable_dag", lambda name: None)
    return triggered


@pytest.mark.parametrize(
    "decision", [("replay", "shop", "one"), ("discard", "shop", "one", "--reason", "x", "--yes", "shop")]
)
def test_no_run_is_triggered_for_a_decision_whose_table_waits_for_its_resume(
    cdc: CommandLine, harness: RunHarness, runs: list[str], decision: tuple[str, ...]
) -> None:
    blocked_by_its_record(cdc, harness)
    waited = cdc("quarantine", *decision, "--now", "--wait", "--json")
    (problem,) = waited.body["problems"]
    assert (waited.code, problem["code"], runs) == (75, "CLI010", [])
    assert problem["do"] == "airflow cdc resume shop --table public.a"
    submitted = cdc("quarantine", *decision, "--now", "--json")
    assert (submitted.code, submitted.body["status"], submitted.body["waits_for"]) == (0, "pending", [TABLE])
    assert runs == []
    assert "it waits until these are resumed: public.a" in cdc("status", "shop").out
    assert cdc("resume", "shop", "--table", TABLE).code == 0
    cdc("quarantine", *decision, "--now")
    assert runs == ["shop"]


def test_a_run_is_triggered_for_a_table_whose_block_is_only_shown(
    cdc: CommandLine, harness: RunHarness, runs: list[str]
) -> None:
    with_bad_records(harness)
    problem = Problem("SRC010", "the source is a different system")
    harness.state.change_tables("shop", lambda known: [blocked_row(known[TABLE], problem, utc_now())])
    submitted = cdc("quarantine", "replay", "shop", "one", "--now", "--json")
    assert (submitted.code, submitted.body["waits_for"], runs) == (0, [], ["shop"])


def test_runs_are_triggered_for_the_tables_that_do_not_wait(
    cdc: CommandLine, harness: RunHarness, runs: list[str]
) -> None:
    blocked_by_its_record(cdc, harness)
    assert cdc("pause", "shop", "--table", TABLE).code == 0
    cdc("resync", "shop", "--now")
    assert runs == ["shop"]
    waited = cdc("resync", "shop", "--table", TABLE, "--now", "--wait", "--json")
    assert (waited.code, waited.body["problems"][0]["code"], runs) == (75, "CLI010", ["shop"])
