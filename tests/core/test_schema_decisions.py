"""What a table does at a schema change, by policy, target and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, decided_renames
from airflow_cdc_provider.core.decisions.schema_decisions import (
    SchemaAction,
    SchemaDecision,
    SchemaStop,
    decide_schema_change,
    question_about,
)
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, alterations, altered
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare
from airflow_cdc_provider.core.table.states import State, TableState

INT, BIG, TEXT = (LogicalType(kind) for kind in (Kind.INT32, Kind.INT64, Kind.TEXT))
ID = Column("id", INT, False, id="1")
A, B = Column("a", INT, id="2"), Column("b", TEXT, id="3")
SCHEMA = TableSchema("t", (ID, A, B), ("id",))
STATE = State(TableState.REPLICATING, "2026-01-01")
CONTROL = ControlRecord("shop", "t", "log", "tests", "a", 1, 7, "f", STATE, schema=SCHEMA)
ALL = SchemaPolicy(OnChange.APPLY, OnDrop.DROP, *[OnChange.APPLY] * 4)
ASK = SchemaPolicy(OnChange.ASK, OnDrop.ASK, *[OnChange.ASK] * 4)


def able(alterations: Sequence[Alteration]) -> tuple[str, ...]:
    return tuple(f"{one.kind} {one.column.name}" for one in alterations)


def decide(
    after: TableSchema,
    policy: SchemaPolicy,
    answer: OperatorDecision | None = None,
    can: bool = True,
) -> SchemaDecision:
    statements = able if can else lambda alterations: None if alterations else ()
    return decide_schema_change(CONTROL, SchemaStop(7, SCHEMA, after), policy, statements, answer)


def with_columns(*columns: Column) -> TableSchema:
    return replace(SCHEMA, columns=columns)


WIDER = with_columns(ID, replace(A, type=BIG), B)
RENAMED = with_columns(ID, A, replace(B, name="b2"))
NARROWER = with_columns(ID, replace(A, type=LogicalType(Kind.INT16)), B)


def test_a_target_that_can_is_altered() -> None:
    decision = decide(WIDER, SchemaPolicy())
    assert decision.action is SchemaAction.ALTER and able(decision.alterations) == ("widen a",)
    assert decide(WIDER, SchemaPolicy(), can=False).action is SchemaAction.STOP


@pytest.mark.parametrize("after", [NARROWER, replace(SCHEMA, key=("a",))], ids=["narrow", "key"])
def test_what_no_target_can_apply_is_copied_or_stops(after: TableSchema) -> None:
    assert decide(after, ALL).action is SchemaAction.COPY
    assert decide(after, SchemaPolicy()).action is SchemaAction.STOP


def test_a_table_that_only_another_snapshot_of_its_feed_can_copy_stops() -> None:
    stop = SchemaStop(7, SCHEMA, NARROWER)
    decision = decide_schema_change(CONTROL, stop, ALL, able, None, can_copy=False)
    assert decision.action is SchemaAction.STOP and decision.problem
    assert decision.problem.do.startswith("let the connector send a new snapshot")


@pytest.mark.parametrize("history", [History.SCD2, History.LOG])
def test_a_history_is_not_copied_again_where_old_versions_would_not_fit(history: History) -> None:
    control = replace(CONTROL, schema=stored_schema(history, SCHEMA))

    def remedy(after: TableSchema, policy: SchemaPolicy, can: bool) -> str:
        statements = able if can else lambda alterations: None if alterations else ()
        problem = decide_schema_change(control, SchemaStop(7, SCHEMA, after), policy, statements, None).problem
        assert problem is not None
        return problem.do

    in_place = "let the target execute the change in place (Delta: `table_features`), then airflow cdc resync"
    assert remedy(WIDER, SchemaPolicy(), can=False).startswith(in_place)
    assert remedy(NARROWER, SchemaPolicy(), can=True).startswith("set another `target` for a new history")
    assert remedy(WIDER, SchemaPolicy(widen=OnChange.STOP), can=True).startswith("airflow cdc resync")
    assert remedy(with_columns(ID, A), SchemaPolicy(drop_column=OnDrop.STOP), can=False).startswith(
        "airflow cdc resync"
    )


def test_a_rename_counts_for_its_table_and_for_the_change_that_was_asked_about() -> None:
    def renamed(window: int | None, table: str, **columns: str) -> OperatorDecision:
        return OperatorDecision(
            "1", DecisionKind.SCHEMA, "shop", table, "ada", "", answer=Answer.RENAME, columns=columns, window=window
        )

    decisions = [renamed(7, "t", b="c"), renamed(3, "t", a="b"), renamed(7, "u", a="x"), renamed(None, "t", d="e")]
    assert decided_renames(decisions, "t", 7) == {"b": "c"}, "the answer about window 3 has ended"
    assert decided_renames(decisions, "t", 3) == {"a": "c", "b": "c"}, "a record that waits passes both"
    assert decided_renames(decisions, "t", 8) == {}
    assert decided_renames([replace(decisions[0], answer=Answer.APPLY)], "t", 7) == {}


def test_the_strictest_policy_counts_and_all_changes_are_named() -> None:
    both = with_columns(ID, replace(A, type=BIG), replace(B, name="b2"))
    decision = decide(both, replace(ALL, rename=OnChange.STOP))
    assert decision.action is SchemaAction.STOP
    assert decision.reason == "column b was renamed to b2; column a changed from int32 to int64"


def test_columns_that_may_have_been_renamed_are_never_renamed_without_an_operator() -> None:
    without_ids = with_columns(*(replace(column, id="") for column in (ID, A, replace(B, name="b2"))))
    assert decide(without_ids, ALL).action is SchemaAction.STOP
    asked = decide(without_ids, ASK).question
    assert asked and asked.answers == (Answer.APPLY, Answer.RENAME, Answer.IGNORE, Answer.RESYNC, Answer.LEAVE)
    assert asked.renames == (("b", "b2"),) and asked.columns == ("b2",)
    answer = OperatorDecision(
        "1", DecisionKind.SCHEMA, "shop", "t", "ada", "", question=asked.id, answer=Answer.RENAME, columns={"b": "b2"}
    )
    assert able(decide(without_ids, ASK, answer).alterations) == ("rename b",)


def test_a_question_proposes_what_the_target_would_execute() -> None:
    asked = decide(WIDER, ASK)
    assert asked.action is SchemaAction.ASK and asked.problem and asked.problem.code == "SCH002"
    assert asked.question and asked.question.statements == ("widen a",)
    unable = decide(WIDER, ASK, can=False).question
    assert unable and unable.answers == (Answer.IGNORE, Answer.RESYNC, Answer.LEAVE)
    assert asked.question.id == unable.id == question_about(CONTROL, SchemaStop(7, SCHEMA, WIDER))


def test_the_same_change_at_another_cursor_is_another_question() -> None:
    ids = {question_about(CONTROL, SchemaStop(window, SCHEMA, WIDER)) for window in (7, 8)}
    assert len(ids) == 2


def test_an_approved_change_is_applied() -> None:
    question = decide(WIDER, ASK).question
    assert question
    answer = OperatorDecision(
        "1", DecisionKind.SCHEMA, "shop", "t", "ada", "", question=question.id, answer=Answer.APPLY
    )
    assert decide(WIDER, ASK, answer).action is SchemaAction.ALTER
    assert decide(WIDER, ASK, replace(answer, answer=Answer.LEAVE)).action is SchemaAction.ASK


def test_columns_that_exchange_their_names_cannot_be_renamed() -> None:
    swapped = with_columns(ID, replace(A, name="b", type=TEXT), replace(B, name="a", type=INT))
    assert alterations(compare(SCHEMA, swapped), ("id",), None) is None
    assert decide(swapped, ALL).action is not SchemaAction.ALTER


names = st.sampled_from(["id", "a", "b", "c", "d"])


@given(st.lists(names, min_size=3, max_size=3, unique=True), st.booleans(), st.booleans())
def test_alterations_lead_to_the_later_schema(new_names: list[str], wider: bool, dropped: bool) -> None:
    columns = [replace(column, name=name) for column, name in zip((ID, A, B), new_names, strict=True)]
    columns[1] = replace(columns[1], type=BIG) if wider else columns[1]
    after = TableSchema("t", tuple(columns[:2] if dropped else columns), (new_names[0],))
    found = alterations(compare(SCHEMA, after), after.key, Alter.DROP)
    if found is not None:
        assert altered(SCHEMA, found) == after
