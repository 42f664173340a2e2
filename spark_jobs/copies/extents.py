"""Copies that read some rows of a table only, and what such a copy must contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import DataFrame

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.columns.copied import copied_name
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Scalar
from airflow_cdc_provider.core.spec.filters import Value
from airflow_cdc_provider.core.spec.filters import literal as value_of
from airflow_cdc_provider.core.table.copy_extent import CopyExtent
from airflow_cdc_provider.core.table.schema import LogicalType
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import literal

NO_ROWS = SplitRead((), rows=0, repeatable=True)
OPERATORS = {Comparison.NOT_EQUAL: "<>", Comparison.IN: "IN", Comparison.NOT_IN: "NOT IN"}


def filtered(task: TableTask, extent: CopyExtent) -> TableTask:
    """The task with the conditions of the extent as further conditions of its row filter."""
    rule = task.rule
    where, snapshot = (*rule.where, *extent.where), replace(rule.snapshot, where=())
    return replace(task, rule=replace(rule, where=where, snapshot=snapshot)) if extent.where else task


def limited(copy: Copy, extent: CopyExtent) -> Copy:
    """A view of ``filtered`` rows, or of none."""
    return copy if extent.rows else replace(copy, read=NO_ROWS, rows=0)


def rows_in_extent(rows: DataFrame, task: TableTask, extent: CopyExtent) -> DataFrame:
    """The rows of a copy that match the conditions of its extent now."""
    conditions = [_sql(task, condition) for condition in extent.where]
    return rows.where(" AND ".join(conditions)) if conditions else rows


def _sql(task: TableTask, condition: Condition) -> str:
    column = task.schema.column(copied_name(task.rule, condition.column))
    name, op = quoted(column.name), condition.op
    if op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return f"{name} {op.value}"
    given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    operands = _literals([value for value in given if value is not None], column.type)
    is_list = op in (Comparison.IN, Comparison.NOT_IN)
    return f"{name} {OPERATORS.get(op, op.value)} {f'({operands})' if is_list else operands}"


def _literals(values: Sequence[Scalar], logical: LogicalType) -> str:
    return ", ".join(_literal(value_of(logical.kind, value), logical) for value in values)


def _literal(value: Value, logical: LogicalType) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else literal(_canonical(value), logical)


def _canonical(value: Value) -> object:
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z") if value.tzinfo else value.isoformat()
    return value.isoformat() if isinstance(value, date) else value
