"""What Delta allows in names, and how its tables and their files are named."""

from __future__ import annotations

from airflow_cdc_provider.targets.sparksql.names import quoted

NEEDS_COLUMN_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Parquet field names may not hold; Delta takes them only under column mapping."""

LOG = "_delta_log"
OUR_FILES = "cdc-"
"""How the files begin that we write without Spark. A copy that died leaves some that no table names: they must be told
from those of somebody else."""


def path_table(path: str) -> str:
    return f"delta.{quoted(path)}"
