"""Names of Delta tables, columns and files."""

from __future__ import annotations

from airflow_cdc_provider.targets.sparksql.names import quoted

NEEDS_COLUMN_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Parquet field names may not contain; Delta allows them only with column mapping."""

LOG = "_delta_log"
FILE_PREFIX = "cdc-"
"""Prefix of data files that are written without Spark. It distinguishes orphans of a failed copy from other files."""


def path_table(path: str) -> str:
    return f"delta.{quoted(path)}"
