"""The chores of a Delta table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.targets.delta.names import path_table
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.delta.upkeep import Chore, Figures, due

SHORTEST_VACUUM = timedelta(days=7)
"""Delta refuses to remove what is younger: a reader or a writer may still be at work on it."""


def maintain(spark: SparkSession, tables: DeltaTarget, task: TableTask, keep: timedelta) -> tuple[str, ...]:
    keep = max(keep, SHORTEST_VACUUM)
    path = path_table(tables.locate(task.target))
    chores = due(_figures(spark, tables, task), keep)
    for chore in chores:
        match chore:
            case Chore.PURGE:
                spark.sql(f"REORG TABLE {path} APPLY (PURGE)")
            case Chore.COMPACT:
                spark.sql(f"OPTIMIZE {path}")
            case Chore.VACUUM:
                spark.sql(f"VACUUM {path} RETAIN {round(keep.total_seconds() / 3600)} HOURS")
            case Chore.CHECKPOINT:
                tables.write_checkpoint(task.target)
    return chores


def _figures(spark: SparkSession, tables: DeltaTarget, task: TableTask) -> Figures:
    log: Any = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(  # type: ignore[union-attr]
        spark._jsparkSession, tables.locate(task.target)
    )
    snapshot = log.update(False, getattr(log, "update$default$2")(), getattr(log, "update$default$3")())
    files = DataFrame(snapshot.allFiles().toDF(), spark)
    told = files.selectExpr(
        "count(*)", "sum(size)", "sum(get_json_object(stats, '$.numRecords'))", "sum(deletionVector.cardinality)"
    ).first()
    number, size, rows, marked = (int(value or 0) for value in told or ())
    unvacuumed, commits = _unvacuumed(tables.open(task.target).history()), tables.commits_to_read(task.target)
    return Figures(number, size, rows, marked, unvacuumed, commits)


def _unvacuumed(history: list[dict[str, Any]]) -> timedelta:
    """Since the last vacuum, or since the oldest commit that is known; nothing where no commit has come since."""
    vacuums = [entry["timestamp"] for entry in history if str(entry.get("operation", "")).startswith("VACUUM")]
    since = max(vacuums, default=history[-1]["timestamp"])
    if history[0]["timestamp"] <= since:
        return timedelta(0)
    return datetime.now(UTC) - datetime.fromtimestamp(since / 1000, UTC)
