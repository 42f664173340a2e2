"""A replicator is renamed, its staging is moved, and it is deleted, each killed at every failpoint in turn: the copies
stay correct, and nothing is left at the end."""

from __future__ import annotations

import signal
from dataclasses import replace

import psycopg
import pytest

from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.core.errors import Blocked
from tests.faults.leaving import DELETE, FAILPOINTS, MOVE, RENAME, run
from tests.faults.runner import FaultRunner, findings_at_rest, run_until_caught_up
from tests.faults.system import SystemUnderTest
from tests.faults.worker import Arguments

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]


@pytest.mark.parametrize("target", ["delta", "iceberg", "postgres", "mysql", "spanner"])
def test_a_killed_command_is_finished_by_its_repetition(runner: FaultRunner, target: str) -> None:
    if not runner.servers.can_start(target):
        pytest.skip("no server")
    system = runner.system_for(target, fresh=True)
    try:
        system.add_table()
        assert run_until_caught_up(system) == []

        new_name = f"{system.name}_renamed"
        killed_everywhere(system, RENAME, {"name": new_name})
        system.definition = replace(system.definition, name=new_name)
        system.checker.renamed = new_name
        system.checker.slot = f"cdc_{new_name}"
        continues(system)

        location = f"{system.folder}/moved/staging"
        killed_everywhere(system, MOVE, {"location": location})
        staging = replace(system.definition.staging, location=location)
        system.definition = replace(system.definition, staging=staging)
        system.checker.staging = system.folder / "moved" / "staging"
        continues(system)

        killed_everywhere(system, DELETE, {})
        assert left_at_the_source(system) == ([], {"accounts", "events"})
        assert not (system.folder / "moved" / "staging" / new_name).exists()
        replicator = system.replicator()
        for table, copy in (("public.accounts", "accounts"), ("public.events", "events")):
            assert not replicator.targets.only.state(table, copy).exists
    finally:
        runner.leave()


def killed_everywhere(system: SystemUnderTest, task: str, arguments: Arguments) -> None:
    for failpoint in FAILPOINTS[task]:
        assert run(system, task, arguments, failpoint) == -signal.SIGKILL, failpoint
        with pytest.raises(Blocked, match="CMD022"):
            open_window(system.replicator(), RunContext("manual__refused"), print)
    assert run(system, task, arguments) == 0
    with pytest.raises(Blocked, match=r"CMD02[013]"):
        open_window(system.replicator(), RunContext("manual__refused"), print)


def continues(system: SystemUnderTest) -> None:
    system.writer.step(3)
    assert run_until_caught_up(system) == []
    assert [*map(str, system.checker.check())] == []
    assert findings_at_rest(system) == []


def left_at_the_source(system: SystemUnderTest) -> tuple[list[str], set[str]]:
    """The slots, and the tables of the publication."""
    with psycopg.connect(system.dsn, autocommit=True) as connection:
        slots = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() AND slot_name ~ '^cdc_'"
        members = "SELECT tablename FROM pg_publication_tables WHERE pubname = %s"
        return (
            [name for (name,) in connection.execute(slots)],
            {name for (name,) in connection.execute(members, [f"cdc_{system.name}"])},
        )
