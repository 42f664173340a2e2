"""The rows that a history says exist now, as a Spark frame."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.history import IS_CURRENT, OPERATION, SEQUENCE
from airflow_cdc_provider.targets.sparksql.names import quoted

DELETE, TRUNCATE = Operation.DELETE.value, Operation.TRUNCATE.value


def current_rows(history: History, rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """With the columns of the history. ``rows``: all of the target table. ``key``: of the source's rows. In a log of
    changes it is the last change of each key; a column that it lacks is NULL."""
    match history:
        case History.NONE:
            return rows
        case History.SCD2:
            return rows.where(IS_CURRENT)
        case History.LOG:
            return _last_changes(rows, key)


def _last_changes(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    changes = rows.where(F.col(OPERATION) != TRUNCATE)
    newest = Window.partitionBy(*(F.col(quoted(name)) for name in key)).orderBy(F.desc(SEQUENCE))
    last = changes.withColumn("_cdc_rank", F.row_number().over(newest)).where("_cdc_rank = 1").drop("_cdc_rank")
    truncates = rows.where(F.col(OPERATION) == TRUNCATE).agg(F.max(SEQUENCE).alias("_cdc_truncated"))
    remaining = last.crossJoin(F.broadcast(truncates)).where(
        (F.col(OPERATION) != DELETE) & (F.col(SEQUENCE) > F.coalesce("_cdc_truncated", F.lit("")))
    )
    return remaining.drop("_cdc_truncated")
