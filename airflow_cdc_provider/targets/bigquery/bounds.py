"""The range of the keys of a batch, so that its statements read only the blocks and partitions of the table with such
keys. A row of the table that has the key of a staged row lies in the range."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS as T
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.bigquery.names import column_name
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql, text_literal, unparameterized

LONGEST = 1_024
"""Characters of a value by which BigQuery clusters."""


def bounded_columns(schema: TableSchema, arranged_by: Collection[str]) -> list[Column]:
    """The key columns that are among ``arranged_by``: BigQuery's names of the columns by which the table is clustered
    or partitioned. NULL is in no range."""
    keys = (schema.column(name) for name in schema.key if column_name(name) in arranged_by)
    return [column for column in keys if not column.nullable]


def bounds_query(sql: BigQuerySql, staged: str, columns: Sequence[Column]) -> str:
    """``staged``: SQL. Least and greatest value of each column as texts, NULL without rows."""
    names = [f"{S}.{sql.quoted(column.name)}" for column in columns]
    extremes = (f"CAST({function}({name}) AS STRING)" for name in names for function in ("MIN", "MAX"))
    selected = ", ".join(f"{extreme} AS bound_{number}" for number, extreme in enumerate(extremes))
    return f"SELECT {selected} FROM {staged} AS {S}"


def bounds_condition(sql: BigQuerySql, columns: Sequence[Column], bounds: Sequence[str | None]) -> str:
    """``bounds``: the row of the query."""
    ranges = zip(columns, bounds[::2], bounds[1::2], strict=True)
    return " AND ".join(
        f"{T}.{sql.quoted(column.name)} BETWEEN {_constant(sql, low, column)} AND {_constant(sql, high, column)}"
        for column, low, high in ranges
        if low is not None and high is not None and max(len(low), len(high)) <= LONGEST
    )


def _constant(sql: BigQuerySql, text: str, column: Column) -> str:
    kind = unparameterized(sql.column_type(column, in_key=True))
    return text_literal(text) if kind == "STRING" else f"CAST({text_literal(text)} AS {kind})"
