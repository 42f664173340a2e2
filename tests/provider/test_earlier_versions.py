"""Runs of an earlier version of the YAML: queued before it changed, or cleared in a bundle that keeps its versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.replicator_changes import register
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.spec.definition import Definition, TableRule, whole_fingerprint
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.run_harness import RunHarness
from tests.provider.step_harness import StepHarness

A, B = "public.a", "public.b"
FIRST, SECOND, THIRD = "018f-1", "018f-2", "018f-3"


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    """The table b was added in the second version."""
    harness = RunHarness(tmp_path)
    harness.definition = first_version(harness)
    assert harness.run(RunContext("r1", dag_version=FIRST)).problems == ()
    harness.definition = replace(harness.definition, tables=(TableRule(A), TableRule(B)))
    assert harness.run(RunContext("r2", dag_version=SECOND)).problems == ()
    return harness


def first_version(harness: RunHarness) -> Definition:
    return replace(harness.definition, tables=(TableRule(A),))


def registered(harness: RunHarness) -> tuple[Definition, str]:
    entry = harness.state.replicators.get("shop")
    assert entry is not None
    return entry.definition, entry.dag_version


def test_a_run_of_an_earlier_version_seals_and_acknowledges_nothing_and_ends_no_command(harness: RunHarness) -> None:
    newest = harness.definition
    harness.source.change(A, B)
    harness.extract(harness.open(RunContext("killed", dag_version=SECOND)).plan)
    assert harness.close("killed", ["stage"]).problems
    harness.source.change(A, B)
    resync = harness.request(CommandKind.RESYNC, B)
    before = (harness.replicator.log.sealed(), harness.state.tables("shop"), harness.slot())
    harness.definition = first_version(harness)
    decision = harness.open(RunContext("r1", dag_version=FIRST))
    assert decision.outdated and "earlier version of the YAML" in decision.notes[0]
    assert harness.close("r1").problems == ()
    assert before == (harness.replicator.log.sealed(), harness.state.tables("shop"), harness.slot())
    assert [one.id for one in harness.state.pending("shop")] == [resync.id]
    assert registered(harness) == (newest, SECOND)
    harness.definition = newest
    assert harness.run(RunContext("r3", dag_version=SECOND)).problems == ()
    assert (harness.control(A).window, harness.control(B).state.name) == (3, TableState.REPLICATING)


def test_a_backfill_of_an_earlier_version_fails_since_no_later_run_does_its_work(harness: RunHarness) -> None:
    interval = ("2024-03-01T00:00:00+00:00", "2024-03-02T00:00:00+00:00")
    before = (harness.replicator.log.sealed(), harness.state.tables("shop"), registered(harness))
    harness.definition = first_version(harness)
    decision = harness.open(RunContext("b1", Mode.REPAIR, interval, dag_version=FIRST))
    assert decision.outdated and decision.stop
    (problem,) = harness.close("b1").problems
    assert problem == decision.stop and problem.code == "RUN007"
    assert problem.do == (
        "airflow backfill create --dag-id shop --from-date 2024-03-01T00:00:00+00:00 "
        "--to-date 2024-03-01T00:00:00+00:00 --reprocess-behavior failed --run-on-latest-version"
    )
    assert before == (harness.replicator.log.sealed(), harness.state.tables("shop"), registered(harness))


def test_a_later_version_may_leave_out_a_table_and_be_what_an_earlier_one_was(harness: RunHarness) -> None:
    harness.definition = first_version(harness)
    assert not harness.open(RunContext("r3", dag_version=THIRD)).outdated
    assert registered(harness) == (harness.definition, THIRD)
    assert not harness.open(RunContext("r1", dag_version=FIRST)).outdated, "it says the same"
    assert registered(harness) == (harness.definition, THIRD)


def test_without_versions_the_definition_of_a_run_is_the_newest(harness: RunHarness) -> None:
    harness.definition = first_version(harness)
    assert not harness.open("r3").outdated
    assert registered(harness) == (harness.definition, "")


@pytest.mark.usefixtures("fake_spark", "own_cache", "connections")
@pytest.mark.parametrize("missing", ["the table", "its settings"])
def test_no_window_is_sealed_without_a_table_of_a_later_version(tmp_path: Path, missing: str) -> None:
    """The run was opened before the version of another run was registered."""
    steps = StepHarness(tmp_path)
    more = {"extract": True, "sealed": 4, "lo": {"slot": "0/1"}, "limit": {"slot": "0/9"}}
    plan = steps.plan(A, **more, definition="the earlier one")
    register(steps.state, steps.definition)
    copied = replace(steps.commit(A), definition_sha256="d1")
    known = [TableRow(A, "public_a", TableState.REPLICATING, "2026-01-01", control=copied)]
    left = replace(known[0], table=B) if missing == "the table" else known[0]
    assert left.control is not None
    steps.state.change_tables(steps.definition.name, lambda _: known)
    summary = steps.execute("extract")
    assert summary["tables"] == {"done": 1}, "it has every table"
    control = left.control if missing == "the table" else replace(left.control, definition_sha256="d2")
    steps.state.change_tables(steps.definition.name, lambda _: [replace(left, control=control)])
    with pytest.raises(AirflowSkipException, match=left.table):
        steps.execute("extract", 2)
    steps.run.write_plan(replace(plan, definition=whole_fingerprint(steps.definition)))
    assert steps.execute("extract", 3)["tables"] == {"done": 1}, "the newest version may leave it out"
