"""When a new attempt uses the result of an earlier one, and which attempts conflict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.attempts import conflicting_tables, result_is_current
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState

A, AB, B = frozenset("a"), frozenset("ab"), frozenset("b")
SCHEMA = TableSchema("a", (Column("id", LogicalType(Kind.INT64)),), ("id",))
STATE = State(TableState.REPLICATING, "2026-11-21T00:00:00Z")
CONTROL = ControlRecord("shop", "a", "log", "owner", "earlier", 1, 3, "f0", STATE)
TASK = TableTask("a", "a", SCHEMA, TableRule("a"), "d1", TableState.REPLICATING, CONTROL)
DEFINITION = Definition(
    name="shop",
    source=Source("postgres", "db"),
    target=Target("delta"),
    tables=(TableRule("a"),),
    staging=Staging("/s"),
)
STEP = Step(StepKind.MERGE, DEFINITION, "run", "first", "", "", "owner", "log", 1, {}, (TASK,), 5, merge_of="staged")
DONE = StepResult(StepKind.MERGE, "first", (TableResult("a", Outcome.DONE),))


def holding(step: Step, control: ControlRecord | None) -> Step:
    return replace(step, attempt="second", tables=(replace(TASK, control=control),))


def test_a_result_is_current_while_its_tables_are_as_the_attempt_found_them() -> None:
    assert result_is_current(STEP, DONE, replace(STEP, attempt="second", folder="2", secrets_path="/t"))


def test_a_result_is_current_while_its_tables_are_as_the_attempt_left_them() -> None:
    assert result_is_current(STEP, DONE, holding(STEP, replace(CONTROL, attempt="first", window=5)))


def test_a_result_is_void_after_another_commit_to_a_table() -> None:
    assert not result_is_current(STEP, DONE, holding(STEP, replace(CONTROL, attempt="other", window=5)))


def test_a_result_is_void_after_a_table_was_fenced() -> None:
    assert not result_is_current(STEP, DONE, holding(STEP, CONTROL.fenced(attempt="run merge")))


def test_a_result_is_void_when_a_table_is_gone() -> None:
    assert not result_is_current(STEP, DONE, holding(STEP, None))


def test_a_result_does_not_cover_a_table_that_the_step_has_since() -> None:
    more = replace(STEP, tables=(*STEP.tables, replace(TASK, table="b")))
    assert not result_is_current(STEP, DONE, more)


@pytest.mark.parametrize(
    "arguments",
    [
        {"window": 6},
        {"limit": {"slot": "0/9"}},
        {"lo": {"slot": "0/1"}},
        {"merge_of": "staged again"},
        {"repair": (2, 3)},
        {"opening": "cleared"},
        {"epoch": 2},
        {"log_id": "another log"},
        {"tables": (replace(TASK, definition_sha256="d2"),)},
    ],
)
def test_a_result_is_void_when_the_step_has_other_arguments(arguments: dict[str, object]) -> None:
    assert not result_is_current(STEP, DONE, replace(STEP, attempt="second", **arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [Outcome.FAILING, Outcome.BLOCKED])
def test_a_result_with_a_failing_or_blocked_table_is_not_final(outcome: Outcome) -> None:
    assert not result_is_current(STEP, replace(DONE, tables=(TableResult("a", outcome),)), STEP)


def test_the_result_of_a_failed_step_is_void() -> None:
    assert not result_is_current(STEP, replace(DONE, problem=Problem("X001", "no")), STEP)


def test_the_result_of_a_copy_depends_on_its_commit_and_not_on_later_windows() -> None:
    pending = replace(STEP, kind=StepKind.SNAPSHOT, tables=(replace(TASK, control=None),))
    later = replace(pending, window=9)
    assert not result_is_current(pending, DONE, later), "there is no table yet: nothing was committed"
    assert result_is_current(pending, DONE, holding(later, replace(CONTROL, attempt="first")))


def test_attempts_that_write_conflict_on_the_tables_they_have_in_common() -> None:
    assert conflicting_tables(StepKind.STAGE, AB, "merge", A) == A
    assert conflicting_tables(StepKind.MERGE, AB, "resync", B) == B
    assert conflicting_tables(StepKind.STAGE, A, "merge", B) == frozenset()


def test_an_attempt_that_only_writes_files_conflicts_with_its_own_kind_only() -> None:
    assert conflicting_tables(StepKind.STAGE, A, "extract", AB) == frozenset()
    assert conflicting_tables(StepKind.MERGE, A, "stage", AB) == frozenset()
    assert conflicting_tables(StepKind.EXTRACT, AB, "extract", A) == A


def test_extract_conflicts_with_no_writer_because_it_touches_no_table() -> None:
    assert conflicting_tables(StepKind.EXTRACT, AB, "merge", A) == frozenset()
