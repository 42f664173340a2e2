"""Errors at source and target between runs: each ends with a clear message, and no change is lost.

The tests build on each other; the checker checks all of them at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import table as arrow

from airflow_cdc_provider.core.spec.definition import Reconcile
from tests.faults.dag_run import DagRun
from tests.faults.runner import FaultRunner, run_until_caught_up
from tests.faults.system import SystemUnderTest
from tests.faults.workloads import carry_out, request
from tests.faults.writer import ACCOUNTS, EVENTS

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture
def system(runner: FaultRunner) -> Iterator[SystemUnderTest]:
    """Restores definition and connections after the test."""
    made = runner.system_for("delta")
    definition, secrets = made.definition, made.secrets
    yield made
    made.definition, made.secrets = replace(definition, tables=made.definition.tables), secrets


def problems_of_next_run(system: SystemUnderTest) -> str:
    """The problems of the next run, which never show the password."""
    dag_run = DagRun(system).execute()
    text = "\n".join(dag_run.problems)
    assert not dag_run.green
    assert system.password not in text
    return text


def test_an_unreachable_host_is_named(system: SystemUnderTest) -> None:
    system.secrets = replace(system.secrets, source=replace(system.secrets.source, port=1))
    assert "CON010" in (text := problems_of_next_run(system)) and "127.0.0.1:1" in text


def test_a_missing_publication_comes_with_its_statement(system: SystemUnderTest) -> None:
    system.execute(f"alter publication cdc_{system.name} rename to renamed")
    text = problems_of_next_run(system)
    assert f"cdc_{system.name}" in text and "CREATE PUBLICATION" in text
    system.execute(f"alter publication renamed rename to cdc_{system.name}")


def test_a_dropped_slot_blocks_until_a_resync_where_reconcile_is_manual(system: SystemUnderTest) -> None:
    source = replace(system.definition.source, reconcile=Reconcile.MANUAL)
    system.definition = replace(system.definition, source=source)
    with psycopg.connect(system.server.dsn(), autocommit=True) as connection:
        connection.execute("select pg_drop_replication_slot(%s)", [f"cdc_{system.name}"])
    text = problems_of_next_run(system)
    assert f"cdc_{system.name}" in text and "airflow cdc resync" in text
    for shape in system.writer.ledger.shapes.values():
        request(system, "resync", shape.table)


def test_a_table_that_the_replicator_did_not_create_is_not_changed_and_the_others_go_on(
    system: SystemUnderTest,
) -> None:
    shape = system.add_table()
    path = system.folder / "lake" / shape.target
    write_deltalake(path, arrow({"a": [1]}))
    with system.writer.still():  # a truncate would copy the other table again
        text = problems_of_next_run(system)
    assert shape.table in text and "TGT012" in text
    assert DeltaTable(path).version() == 0
    assert system.replicator().state.tables(system.name)[EVENTS.table].state == "replicating"
    path.rename(system.folder / "foreign")


def test_a_table_that_left_the_publication_and_returned_is_copied_again(system: SystemUnderTest) -> None:
    assert run_until_caught_up(system) == []
    system.execute(f"alter publication cdc_{system.name} drop table accounts")
    system.writer.step(5)
    system.execute(f"alter publication cdc_{system.name} add table accounts")
    with system.writer.still():
        dag_run = DagRun(system).execute()
    assert dag_run.green and dag_run.states["reconcile.resync"] == "success", dag_run.problems


def test_a_lost_state_store_is_rebuilt_and_paused_tables_stay_paused(system: SystemUnderTest) -> None:
    request(system, "pause", ACCOUNTS.table)
    for path in system.folder.glob("state.db*"):
        path.unlink()
    carry_out(system, "rebuild", {})
    assert system.replicator().state.tables(system.name)[ACCOUNTS.table].state == "paused"
    system.writer.step(3)
    DagRun(system).execute()
    assert system.checker.read_commits()[ACCOUNTS.table][-1].state == "paused"
    request(system, "resume", ACCOUNTS.table)


def test_the_copies_are_correct_after_all_errors(system: SystemUnderTest) -> None:
    assert run_until_caught_up(system) == []
    assert [*system.checker.check(), *system.checker.check_at_rest()] == []
