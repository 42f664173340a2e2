"""Deleted rows that a repair cannot bring back: the target lost them, and the log does not know all their columns."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, OP
from airflow_cdc_provider.targets.sparksql.names import quoted


def lost_rows(staged: DataFrame, target: DataFrame, key: tuple[str, ...]) -> int:
    """How many there are. ``target``: the table behind the repair."""
    gone = staged.where((F.col(OP) == GONE) & F.col(KNOWN).isNotNull()).alias("s")
    same = (F.col(f"s.{quoted(name)}").eqNullSafe(F.col(f"t.{quoted(name)}")) for name in key)
    return gone.join(target.alias("t"), reduce(lambda left, right: left & right, same), "left_anti").count()
