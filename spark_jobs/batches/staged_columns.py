"""The columns of staged rows, as Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.table.merge_plan import KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type


def staged_schema(schema: TableSchema, partial: bool) -> str:
    return ", ".join([*column_list(schema.columns), *technical_columns(schema, partial)])


def technical_columns(schema: TableSchema, partial: bool) -> list[str]:
    order = [f"{ORDER} STRING"] if schema.key else []
    return [*order, f"{OP} STRING", *([f"{KNOWN} ARRAY<STRING>"] if partial else [])]


def column_list(columns: Iterable[Column]) -> list[str]:
    return [f"{quoted(column.name)} {column_type(column.type)}" for column in columns]
