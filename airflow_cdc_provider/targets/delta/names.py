"""What Delta allows in names, and how its tables are named by their folders."""

from __future__ import annotations

from airflow_cdc_provider.targets.sparksql.names import quoted

NEEDS_COLUMN_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Parquet field names may not hold; Delta takes them only under column mapping."""


def path_table(path: str) -> str:
    return f"delta.{quoted(path)}"
