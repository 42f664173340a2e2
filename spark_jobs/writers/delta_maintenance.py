"""Maintenance of a Delta table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, read_snapshot
from airflow_cdc_provider.targets.delta.maintenance import (
    LOG_RETENTION,
    MaintenanceTask,
    TableStatistics,
    due_tasks,
    log_retention,
)
from airflow_cdc_provider.targets.delta.names import path_table
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

SHORTEST_VACUUM = timedelta(days=7)
"""Delta refuses to remove younger files: a reader or a writer may still use them."""


def maintain(
    session: Callable[[], SparkSession], tables: DeltaTarget, task: TableTask, keep: timedelta
) -> tuple[str, ...]:
    """``session`` is called if there is a task, or if only Spark can determine the statistics."""
    keep = max(keep, SHORTEST_VACUUM)
    path = path_table(tables.locate(task.target))
    tasks = due_tasks(_statistics(session, tables, task), keep)
    for maintenance_task in tasks:
        match maintenance_task:
            case MaintenanceTask.RETAIN_LOG:
                setting = f"interval {keep // timedelta(hours=1) + 1} hours"
                session().sql(f"ALTER TABLE {path} SET TBLPROPERTIES ('{LOG_RETENTION}' = '{setting}')")
            case MaintenanceTask.PURGE:
                session().sql(f"REORG TABLE {path} APPLY (PURGE)")
            case MaintenanceTask.COMPACT:
                session().sql(f"OPTIMIZE {path}")
            case MaintenanceTask.VACUUM:
                session().sql(f"VACUUM {path} RETAIN {round(keep.total_seconds() / 3600)} HOURS")
            case MaintenanceTask.CHECKPOINT:
                tables.write_checkpoint(task.target)
    return tasks


def _statistics(session: Callable[[], SparkSession], tables: DeltaTarget, task: TableTask) -> TableStatistics:
    try:
        with tables.translate_errors(task.target):
            files = _file_statistics(read_snapshot(tables.store, task.target).files)
    except NeedsSpark:
        files = _file_statistics_by_spark(session(), tables, task)
    delta_table, commits = tables.open(task.target), tables.commits_since_checkpoint(task.target)
    retention = log_retention(delta_table.metadata().configuration)
    return TableStatistics(*files, _unvacuumed(delta_table.history()), commits, retention)


def _file_statistics(files: Sequence[ActiveFile]) -> tuple[int, int, int, int]:
    """Number of files, bytes, rows, and rows marked deleted."""
    size = sum(int(file.add["size"]) for file in files)
    marked = sum(int(file.vector["cardinality"]) for file in files if file.vector)
    return len(files), size, sum(file.rows or 0 for file in files), marked


def _file_statistics_by_spark(spark: SparkSession, tables: DeltaTarget, task: TableTask) -> tuple[int, int, int, int]:
    log: Any = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(  # type: ignore[union-attr]
        spark._jsparkSession, tables.locate(task.target)
    )
    snapshot = log.update(False, getattr(log, "update$default$2")(), getattr(log, "update$default$3")())
    files = DataFrame(snapshot.allFiles().toDF(), spark)
    totals = files.selectExpr(
        "count(*)", "sum(size)", "sum(get_json_object(stats, '$.numRecords'))", "sum(deletionVector.cardinality)"
    ).first()
    file_count, size, rows, marked = (int(value or 0) for value in totals or ())
    return file_count, size, rows, marked


def _unvacuumed(history: list[dict[str, Any]]) -> timedelta:
    """Time since the last vacuum, or since the oldest known commit; 0 if there was no commit since."""
    vacuums = [entry["timestamp"] for entry in history if str(entry.get("operation", "")).startswith("VACUUM")]
    since = max(vacuums, default=history[-1]["timestamp"])
    if history[0]["timestamp"] <= since:
        return timedelta(0)
    return datetime.now(UTC) - datetime.fromtimestamp(since / 1000, UTC)
