"""A table or target that the YAML no longer selects: its commands end, and nobody is asked about it any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.run_harness import RunHarness

PAUSE, RESUME, RESYNC, VERIFY = CommandKind.PAUSE, CommandKind.RESUME, CommandKind.RESYNC, CommandKind.VERIFY
A, B = "public.a", "public.b"


@pytest.fixture(autouse=True)
def copied(harness: RunHarness) -> None:
    assert harness.run("r1").problems == ()


def select(harness: RunHarness, *tables: str) -> None:
    harness.definition = replace(harness.definition, tables=tuple(map(TableRule, tables)))


def command_of(harness: RunHarness, command: Command) -> Command:
    found = harness.state.command(command.id)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [RESYNC, VERIFY, CommandKind.REPLAY, PAUSE])
def test_a_command_about_a_table_that_left_the_yaml_ends_and_has_no_effect_when_the_table_returns(
    harness: RunHarness, kind: CommandKind
) -> None:
    request = harness.request(kind, B, records=["r"], approve_deletes=True)
    select(harness, A)
    assert dry_run(harness.replicator).has_work
    assert harness.run("r2").problems == ()
    ended = command_of(harness, request)
    assert ended.status is CommandStatus.FAILED and B in ended.outcome
    if kind is not PAUSE:
        assert ended.outcome == "not carried out: the YAML no longer selects public.b"
    assert not dry_run(harness.replicator).has_work
    select(harness, A, B)
    decision = harness.open("r3")
    assert (decision.plan.reconcile, decision.plan.compare, decision.plan.commands) == ((), (), ())
    assert harness.control(B).state.name is TableState.REPLICATING
    assert harness.replicator.log.decisions() == []


@pytest.mark.parametrize("named", [(), (A, B)])
def test_a_command_that_waits_for_one_table_has_ended_for_another_that_left_the_yaml(
    harness: RunHarness, named: tuple[str, ...]
) -> None:
    harness.request(PAUSE, A)
    resync = harness.request(RESYNC, *named)
    select(harness, A)
    assert harness.run("r2").problems == ()
    assert not command_of(harness, resync).finished
    assert not dry_run(harness.replicator).has_work
    select(harness, A, B)
    harness.run("r3")
    assert harness.control(B).resyncs == (), "it returns as it was"
    harness.request(RESUME, A)
    harness.run("r4")
    ended = command_of(harness, resync)
    assert ended.status is CommandStatus.DONE
    assert ended.outcome == "copied again: public.a; not carried out: the YAML no longer selects public.b"


def test_a_command_about_a_table_that_the_source_does_not_list_now_waits(harness: RunHarness) -> None:
    select(harness, A, B)
    resync = harness.request(RESYNC, B)
    listed = harness.source.read()["tables"]
    harness.source.write(tables=[one for one in listed if one["table"] != B])
    assert harness.run("r2").problems
    assert not command_of(harness, resync).finished
    assert not dry_run(harness.replicator).has_work
    harness.source.write(tables=listed)
    harness.run("r3")
    assert command_of(harness, resync).outcome == "copied again: public.b"
