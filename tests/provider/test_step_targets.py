"""The targets that a step reads before it starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.errors import CheckFailed, CommandRefused, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.operators.step_inputs import planned_step, with_tables, with_target_state
from airflow_cdc_provider.targets.registry import Targets
from tests.provider.file_target import FileTarget
from tests.provider.run_harness import target_name
from tests.provider.step_harness import StepHarness

DEFAULT, NAMED = "public.a", "public.a@there"


class Unreachable:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def state(self, table: str, target_table: str) -> Any:
        raise self.error


def targets_of(harness: StepHarness, error: Exception) -> Targets:
    lake = harness.definition.target
    assert lake is not None
    definition = replace(harness.definition, target=None, targets=(lake, replace(lake, name="there")))
    return Targets(definition, lambda one: harness.target if one == lake else Unreachable(error))  # type: ignore[arg-type,return-value]


@pytest.fixture
def harness(tmp_path: Path) -> StepHarness:
    return StepHarness(tmp_path)


@pytest.mark.parametrize("kind", [TargetUnavailable, CheckFailed])
def test_a_copy_whose_target_does_not_answer_is_left_out_and_reported(harness: StepHarness, kind: Any) -> None:
    targets = targets_of(harness, kind.of("TST001", "it does not answer"))
    tasks = [replace(harness.task(DEFAULT), table=name) for name in (DEFAULT, NAMED)]
    plan = harness.plan(DEFAULT)
    step = with_tables(planned_step(StepKind.STAGE, "a", harness.definition, plan, harness.run, harness.log), tasks)
    found, failed = with_target_state(step, targets)
    assert [task.table for task in found.tables] == [DEFAULT]
    assert [(one.table, one.outcome, one.problem and one.problem.code) for one in failed] == [
        (NAMED, Outcome.FAILING, "TST001")
    ]
    with pytest.raises(kind):
        with_target_state(with_tables(step, tasks[1:]), targets)


def test_a_step_names_source_and_key_of_its_run(harness: StepHarness) -> None:
    plan = harness.plan(DEFAULT, hash_key_id="k1")
    step = planned_step(StepKind.STAGE, "a", harness.definition, plan, harness.run, harness.log)
    assert (step.source_identity, step.hash_key_id) == ({"system": "7"}, "k1")


def test_a_target_is_created_when_it_is_needed_and_only_if_it_is_listed(harness: StepHarness) -> None:
    created = list[str]()
    definition = replace(
        harness.definition, target=None, targets=(Target("files", "/a"), Target("files", "/b", name="b"))
    )

    def create(one: Target) -> Any:
        created.append(one.name)
        return FileTarget(one, ConnectionInfo(), "shop", harness.log)

    targets = Targets(definition, create, lambda _: target_name)
    assert targets.table_name("public.t@b:history") == "public_t"
    assert (list(targets), created) == (["default", "b"], [])
    assert targets.of("public.t@b:history") is targets.named("b") and created == ["b"]
    assert not targets.has("public.t@c")
    with pytest.raises(CommandRefused) as refused:
        targets.of("public.t@c")
    assert refused.value.problems[0].code == "CMD045"
