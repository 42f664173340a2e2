"""Which tables may have another name in the source than their copies, and which of them an operator must confirm."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision
from airflow_cdc_provider.core.decisions.renamed_tables import is_followed, may_be_renamed, rename_question
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState

DEFINITION = Definition(
    name="shop",
    source=Source("postgres", "s"),
    target=Target("delta", "/lake"),
    tables=(TableRule("d.t"),),
    staging=Staging("/staging"),
    schema_changes=SchemaPolicy(rename=OnChange.APPLY),
)


def row(copy: str, state: TableState, table: str, window: int) -> TableRow:
    identity = TableIdentity(table, {}, 0)
    control = ControlRecord("shop", copy, "log", "me", "a", 1, window, "", State(state, ""), identity=identity)
    return TableRow(copy, "t", state, control=control)


def test_a_table_is_looked_for_by_the_identity_of_the_copy_that_has_followed_it_furthest() -> None:
    """One that is paused may have that of a table that was dropped since."""
    stale = row("d.t", TableState.PAUSED, "1", 9)
    rows = {one.table: one for one in (stale, row("d.t@wh", TableState.REPLICATING, "2", 5))}
    found = may_be_renamed(DEFINITION, (), rows)["d.t"]
    assert found and found.table == "2"
    assert may_be_renamed(DEFINITION, {"d.t"}, rows) == {}


def test_a_copy_that_was_made_under_the_new_name_is_not_asked_about() -> None:
    control = row("d.t", TableState.REPLICATING, "1", 5).control
    assert control is not None
    question = rename_question(control, "d.u")
    answer = OperatorDecision("n1", DecisionKind.SCHEMA, "shop", "d.t", "ann", "", question=question.id)
    assert not is_followed(control, "d.u", [])
    assert is_followed(control, "d.u", [replace(answer, answer=Answer.APPLY)])
    assert not is_followed(control, "d.u", [replace(answer, answer=Answer.LEAVE)])
    again = replace(control, floor="f2", name_in_source="d.u")
    assert is_followed(again, "d.u", [])
    assert not is_followed(again, "d.v", []), "renamed once more"
