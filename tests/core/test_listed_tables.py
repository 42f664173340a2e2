"""Tables that appear at the source, and tables that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.listed_tables import (
    GoneTable,
    gone_problem,
    gone_tables,
    separate_new_tables,
    was_copied,
)
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, state_before_drop
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.spec.selection import Selection, left_out, select
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState
from tests.core.test_decide import control

ID = Column("id", LogicalType(Kind.INT64), False)
SHOP = Definition(
    name="shop",
    source=Source("postgres", "db"),
    target=Target("delta", "/lake"),
    tables=(TableRule("s.*"), TableRule("s.b")),
    staging=Staging("/staging"),
)


def selections(definition: Definition, *tables: str) -> tuple[Selection, ...]:
    described = [TableSchema(table, (ID,), ("id",)) for table in tables]
    return select(definition, described, lambda name: name.partition(".")[2])[0]


def answered(question: str, answer: Answer, number: int = 1) -> OperatorDecision:
    at = f"2026-01-0{number}T00:00:00.000+00:00"
    return OperatorDecision(
        f"{number}", DecisionKind.SCHEMA, "shop", "s.a", "ada", at, question=question, answer=answer
    )


def test_new_tables_are_copied_by_default() -> None:
    found = selections(SHOP, "s.a", "s.b")
    assert separate_new_tables(SHOP, found, {"s.b"}, [], {}) == (found, ())


@pytest.mark.parametrize("known", [set(), {"s.a"}])
def test_only_new_tables_under_a_pattern_are_excluded(known: set[str]) -> None:
    definition = replace(SHOP, new_tables=OnNewTable.IGNORE)
    copied, excluded = separate_new_tables(definition, selections(definition, "s.a", "s.b"), known, [], {})
    assert [one.table for one in copied] == (["s.a", "s.b"] if known else ["s.b"])
    assert [(one.table, one.target, one.question) for one in excluded] == ([] if known else [("s.a", "a", None)])


def test_the_policy_of_a_rule_has_precedence() -> None:
    definition = replace(SHOP, new_tables=OnNewTable.ASK, tables=(TableRule("s.*", new_tables=OnNewTable.COPY),))
    found = selections(definition, "s.a")
    assert separate_new_tables(definition, found, {"s.z"}, [], {}) == (found, ())


def test_a_new_table_waits_until_an_operator_has_answered() -> None:
    definition = replace(SHOP, new_tables=OnNewTable.ASK)
    found = selections(definition, "s.a")
    _, (excluded,) = separate_new_tables(definition, found, {"s.b"}, [], {})
    assert excluded.question and excluded.question.answers == (Answer.APPLY, Answer.IGNORE, Answer.LEAVE)
    assert excluded.question.changes == ("the source has a new table, selected by s.*: id int64",)
    left = answered(excluded.question.id, Answer.LEAVE)
    assert separate_new_tables(definition, found, {"s.b"}, [left], {})[1] == (excluded,)
    answers = [left, answered(excluded.question.id, Answer.IGNORE, 2)]
    ignored = separate_new_tables(definition, found, {"s.b"}, answers, {})
    assert ignored[0] == () and ignored[1][0].question is None and "ada" in ignored[1][0].reason
    approved = [answered(excluded.question.id, Answer.APPLY)]
    assert separate_new_tables(definition, found, {"s.b"}, approved, {}) == (found, ())


def test_an_answer_counts_for_one_table_not_for_later_ones_of_its_name() -> None:
    definition = replace(SHOP, new_tables=OnNewTable.ASK)
    found = selections(definition, "s.a")
    first, second = ({"s.a": TableIdentity(number, {}, 0)} for number in ("1", "2"))
    _, (asked,) = separate_new_tables(definition, found, {"s.b"}, [], first)
    assert asked.question
    answers = [answered(asked.question.id, Answer.IGNORE)]
    assert separate_new_tables(definition, found, {"s.b"}, answers, first)[1][0].question is None
    assert separate_new_tables(definition, found, {"s.b"}, answers, second)[1][0].question


@pytest.mark.parametrize(
    ("state", "has_control", "copied"),
    [
        (TableState.NEW, False, False),
        (TableState.DROPPED, False, False),
        (TableState.DROPPED, True, True),
        (TableState.PENDING, False, True),
        (TableState.REPLICATING, True, True),
    ],
)
def test_a_table_that_was_dropped_without_a_copy_is_new_when_it_is_back(
    state: TableState, has_control: bool, copied: bool
) -> None:
    control_record = control("s.a") if has_control else None
    assert was_copied(TableRow("s.a", "a", state, control=control_record)) is copied


def row(table: str, state: TableState = TableState.REPLICATING) -> tuple[str, TableRow]:
    return table, TableRow(table, table.partition(".")[2], state)


def test_tables_that_the_source_no_longer_lists_are_gone() -> None:
    rows = dict([row("s.a"), row("s.b"), row("s.c"), row("other.d"), row("s.e", TableState.DROPPED)])
    expected = (GoneTable("s.a", "a", "s.*", OnDroppedTable.KEEP), GoneTable("s.b", "b", "s.b", OnDroppedTable.STOP))
    assert gone_tables(SHOP, {"s.c"}, rows) == expected
    dropping = replace(SHOP, dropped_tables=OnDroppedTable.DROP)
    assert {one.policy for one in gone_tables(dropping, {"s.c"}, rows)} == {OnDroppedTable.DROP}


@pytest.mark.parametrize(
    ("policy", "is_dropped", "blocked"),
    [
        (OnDroppedTable.KEEP, None, False),
        (OnDroppedTable.STOP, None, True),
        (OnDroppedTable.DROP, True, False),
        (OnDroppedTable.DROP, False, True),
        (OnDroppedTable.DROP, None, True),
    ],
)
def test_a_copy_is_only_dropped_if_the_source_confirms_it(
    policy: OnDroppedTable, is_dropped: bool | None, blocked: bool
) -> None:
    problem = gone_problem(GoneTable("s.a", "a", "s.*", policy), is_dropped)
    assert bool(problem) is blocked


def test_the_last_decision_to_drop_a_copy_has_its_state_before_that() -> None:
    drops = [
        OperatorDecision(
            str(number), DecisionKind.DROP_COPY, "shop", table, "run", "", identity=identity, state=State(name, "")
        )
        for number, table, identity, name in (
            (2, "s.a", "x", TableState.PAUSED),
            (1, "s.a", "x", TableState.REPLICATING),
            (3, "s.a", "y", TableState.BLOCKED),
            (4, "s.b", "x", TableState.RESYNCING),
        )
    ]
    assert state_before_drop(drops, "s.a", "x") == State(TableState.PAUSED, "")
    assert state_before_drop(drops, "s.b", "y") is None


OTHERS = {
    "s.v": OtherKind("a view"),
    "s.a_1": OtherKind("a partition", "s.a"),
    "s.c_1": OtherKind("a partition", "t.c"),
    "t.w": OtherKind("a view"),
}


def test_what_a_pattern_leaves_out_is_named_but_not_the_parts_of_a_selected_table() -> None:
    described = [TableSchema(table, (ID,), ("id",)) for table in ("s.a", "s.b", "t.c")]
    found = left_out(SHOP, described, OTHERS)
    assert [(one.where, one.found) for one in found] == [("s.c_1", "a partition of t.c"), ("s.v", "a view")]
    assert found[0].do == "name t.c instead" and found[1].what == "s.v is a view, which is not copied"


def test_a_rule_that_names_something_else_than_a_table_is_refused() -> None:
    definition = replace(SHOP, tables=(TableRule("s.b"), TableRule("s.v"), TableRule("s.absent")))
    described = [TableSchema("s.b", (ID,), ("id",))]
    selected, problems = select(definition, described, lambda name: name.partition(".")[2], others=OTHERS)
    assert [one.table for one in selected] == ["s.b"]
    assert [(one.code, one.table) for one in problems] == [("SRC150", "s.v"), ("DEF041", "s.absent")]
    assert left_out(definition, described, OTHERS) == ()


def test_a_copied_table_whose_name_something_else_has_is_blocked_under_each_policy() -> None:
    for policy in OnDroppedTable:
        problem = gone_problem(GoneTable("s.a", "a", "s.*", policy), None, OtherKind("a view"))
        assert problem and (problem.code, problem.what) == ("TBL004", "s.a is a view, which is not copied")
