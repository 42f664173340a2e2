"""Maintenance of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.targets.iceberg.maintenance import (
    MaintenanceTask,
    due_tasks,
    expirable_before,
    table_statistics,
)
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal


def maintain(spark: SparkSession, tables: IcebergTarget, task: TableTask, keep: timedelta) -> tuple[str, ...]:
    """Snapshots younger than ``keep`` stay, and so do those with a branch or tag, among them the cursor's, and those
    above it."""
    with tables.open(task.target) as (_, iceberg_table):
        cutoff = expirable_before(iceberg_table.metadata, datetime.now(UTC) - keep)
        current = iceberg_table.current_snapshot()
        old = sum(snapshot.timestamp_ms < cutoff.timestamp() * 1000 for snapshot in iceberg_table.metadata.snapshots)
        tasks = due_tasks(table_statistics(current.summary.additional_properties, old))
    for maintenance_task in tasks:
        for statement in _statements(maintenance_task, tables, task, cutoff):
            spark.sql(statement)
    return tasks


def _statements(
    maintenance_task: MaintenanceTask, tables: IcebergTarget, task: TableTask, cutoff: datetime
) -> Iterator[str]:
    """Position deletes of rewritten data files remain, and count in the statistics, until they are rewritten, too."""
    location = tables.catalog_location
    table = f"table => {text_literal(f'{quoted(location.namespace)}.{quoted(task.target)}')}"
    procedures = f"CALL {quoted(location.name)}.system"
    match maintenance_task:
        case MaintenanceTask.COMPACT:
            options = "map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"
            yield f"{procedures}.rewrite_data_files({table}, options => {options}{_sorted(_layout(task))})"
            yield f"{procedures}.rewrite_position_delete_files({table}, options => map('rewrite-all', 'true'))"
        case MaintenanceTask.EXPIRE:
            at = cutoff.strftime("%Y-%m-%d %H:%M:%S.%f")
            yield f"{procedures}.expire_snapshots({table}, older_than => TIMESTAMP '{at}', retain_last => 1)"


def _layout(task: TableTask) -> Sequence[str]:
    return task.cluster_by or task.schema.key


def _sorted(layout: Sequence[str]) -> str:
    """Merges cannot skip files with overlapping key ranges, so rewritten files are sorted."""
    order = ", ".join(quoted(name) for name in layout)
    return f", strategy => 'sort', sort_order => {text_literal(order)}" if order else ""
