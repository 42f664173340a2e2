"""The columns of a target table that belong to its copy: the table may have former ones, and texts of their values."""

from __future__ import annotations

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX
from airflow_cdc_provider.core.table.schema import TEXT_OF, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted


def is_technical(name: str) -> bool:
    """Whether a column is of no column of the source."""
    return name.startswith(RESERVED_PREFIX) and not name.startswith(TEXT_OF)


def own_columns(rows: DataFrame, schema: TableSchema | None) -> DataFrame:
    """Those of the ``schema`` of the copy, and technical ones."""
    if schema is None:
        return rows
    names = {name.lower() for name in schema.names}
    return rows.select(*(quoted(name) for name in rows.columns if name.lower() in names or is_technical(name)))
