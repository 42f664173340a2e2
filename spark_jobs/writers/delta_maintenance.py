"""The chores of a Delta table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, read_snapshot
from airflow_cdc_provider.targets.delta.maintenance import MaintenanceTask, TableStatistics, due
from airflow_cdc_provider.targets.delta.names import path_table
from airflow_cdc_provider.targets.delta.target import DeltaTarget

SHORTEST_VACUUM = timedelta(days=7)
"""Delta refuses to remove what is younger: a reader or a writer may still be at work on it."""


def maintain(
    session: Callable[[], SparkSession], tables: DeltaTarget, task: TableTask, keep: timedelta
) -> tuple[str, ...]:
    """``session``: asked for where there is something to do, or where only Spark can tell."""
    keep = max(keep, SHORTEST_VACUUM)
    path = path_table(tables.locate(task.target))
    chores = due(_figures(session, tables, task), keep)
    for chore in chores:
        match chore:
            case MaintenanceTask.PURGE:
                session().sql(f"REORG TABLE {path} APPLY (PURGE)")
            case MaintenanceTask.COMPACT:
                session().sql(f"OPTIMIZE {path}")
            case MaintenanceTask.VACUUM:
                session().sql(f"VACUUM {path} RETAIN {round(keep.total_seconds() / 3600)} HOURS")
            case MaintenanceTask.CHECKPOINT:
                tables.write_checkpoint(task.target)
    return chores


def _figures(session: Callable[[], SparkSession], tables: DeltaTarget, task: TableTask) -> TableStatistics:
    with tables.answers(task.target):
        snapshot = read_snapshot(tables.store, task.target)
    files = _told_by_spark(session(), tables, task) if snapshot is None else _told(snapshot.files)
    return TableStatistics(*files, _unvacuumed(tables.open(task.target).history()), tables.commits_to_read(task.target))


def _told(files: Sequence[ActiveFile]) -> tuple[int, int, int, int]:
    """Files, bytes, rows, rows marked deleted."""
    size = sum(int(file.add["size"]) for file in files)
    marked = sum(int(file.vector["cardinality"]) for file in files if file.vector)
    return len(files), size, sum(file.rows or 0 for file in files), marked


def _told_by_spark(spark: SparkSession, tables: DeltaTarget, task: TableTask) -> tuple[int, int, int, int]:
    log: Any = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(  # type: ignore[union-attr]
        spark._jsparkSession, tables.locate(task.target)
    )
    snapshot = log.update(False, getattr(log, "update$default$2")(), getattr(log, "update$default$3")())
    files = DataFrame(snapshot.allFiles().toDF(), spark)
    told = files.selectExpr(
        "count(*)", "sum(size)", "sum(get_json_object(stats, '$.numRecords'))", "sum(deletionVector.cardinality)"
    ).first()
    number, size, rows, marked = (int(value or 0) for value in told or ())
    return number, size, rows, marked


def _unvacuumed(history: list[dict[str, Any]]) -> timedelta:
    """Since the last vacuum, or since the oldest commit that is known; nothing where no commit has come since."""
    vacuums = [entry["timestamp"] for entry in history if str(entry.get("operation", "")).startswith("VACUUM")]
    since = max(vacuums, default=history[-1]["timestamp"])
    if history[0]["timestamp"] <= since:
        return timedelta(0)
    return datetime.now(UTC) - datetime.fromtimestamp(since / 1000, UTC)
