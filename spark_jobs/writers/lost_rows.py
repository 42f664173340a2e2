"""Deleted rows that a repair cannot restore: the target lacks them, and the log does not have all their columns."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, OP
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS as T
from airflow_cdc_provider.targets.sparksql.names import quoted


def count_lost_rows(staged: DataFrame, target: DataFrame, key: tuple[str, ...]) -> int:
    """``target``: the table after the repair."""
    deleted = staged.where((F.col(OP) == GONE) & F.col(KNOWN).isNotNull()).alias(S)
    same = (F.col(f"{S}.{quoted(name)}").eqNullSafe(F.col(f"{T}.{quoted(name)}")) for name in key)
    return deleted.join(target.alias(T), reduce(lambda left, right: left & right, same), "left_anti").count()
