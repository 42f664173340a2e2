"""The columns of staged rows, as Spark SQL."""

from __future__ import annotations

from airflow_cdc_provider.core.table.merge_plan import KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type


def staged_schema(schema: TableSchema, partial: bool) -> str:
    """Spelled out where files are read, because inferring them from the files costs a Spark job."""
    columns = [f"{quoted(column.name)} {column_type(column.type)}" for column in schema.columns]
    order = [f"{ORDER} STRING"] if schema.key else []
    return ", ".join([*columns, *order, f"{OP} STRING", *([f"{KNOWN} ARRAY<STRING>"] if partial else [])])
