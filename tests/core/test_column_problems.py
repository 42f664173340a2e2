"""A problem that names ``columns`` is solved by leaving them out: ``airflow cdc init`` relies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Columns, Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.selection import select, selected_schema
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.bigquery.checks import option_problems, table_problems
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.common_checks import check_definition

NAMES = ("id", "ID", "a", "A", "a b", "a_b", "A/B", "_cdc_x", "_CDC_Y", "_partition_x", "b")


def definition_check(task: TableTask) -> Iterable[Problem]:
    """As the source has the table: with every column that the rule does not exclude."""
    definition = Definition(
        name="shop", source=Source("postgres"), target=Target("delta"), tables=(task.rule,), staging=Staging("/data")
    )
    whole = TableSchema(task.table, tuple(Column(name, LogicalType(Kind.INT64)) for name in NAMES), task.schema.key)
    return select(definition, [whole], lambda table: table)[1]


CHECKS: dict[str, Callable[[TableTask], Iterable[Problem]]] = {
    "definition": definition_check,
    "all targets": lambda task: check_definition(task, "Delta"),
    "BigQuery": lambda task: [
        *option_problems(BigQueryOptions("shop")),
        *table_problems(BigQuerySql("p", "shop"), task),
    ],
}


def task_of(names: Iterable[str]) -> TableTask:
    kept = tuple(names)
    rule = TableRule("t", columns=Columns(exclude=tuple(name for name in NAMES if name not in kept)))
    schema = TableSchema("t", tuple(Column(name, LogicalType(Kind.INT64)) for name in NAMES), (kept[0],))
    return TableTask("t", "t", selected_schema(rule, schema), rule, "", TableState.PENDING)


@pytest.mark.parametrize("name", CHECKS)
@given(names=st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
def test_without_the_columns_of_its_problems_a_table_has_none(name: str, names: list[str]) -> None:
    found = [problem for problem in CHECKS[name](task_of(names)) if problem.columns]
    omitted = {column for problem in found for column in problem.columns}
    assert omitted <= set(names)
    if names[0] in omitted:
        return  # the key itself has a reserved name
    rest = [column for column in names if column not in omitted]
    assert [problem for problem in CHECKS[name](task_of(rest)) if problem.columns] == []


@pytest.mark.parametrize("history", [History.SCD2, History.LOG])
@pytest.mark.parametrize("name", ["all targets", "BigQuery"])
def test_the_columns_that_a_history_adds_are_no_problem(name: str, history: History) -> None:
    task = task_of(["id", "a"])
    of_history = replace(task, schema=stored_schema(history, task.schema), rule=replace(task.rule, history=history))
    assert list(CHECKS[name](of_history)) == []
