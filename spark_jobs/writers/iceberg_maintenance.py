"""The chores of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.targets.iceberg.maintenance import MaintenanceTask, due, figures_of
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal


def maintain(spark: SparkSession, tables: IcebergTarget, task: TableTask, keep: timedelta) -> tuple[str, ...]:
    """Snapshots younger than ``keep`` stay, and so does whatever a branch or tag names: the cursor is tagged."""
    cutoff = datetime.now(UTC) - keep
    with tables.open(task.target) as (_, opened):
        current = opened.current_snapshot()
        old = sum(one.timestamp_ms < cutoff.timestamp() * 1000 for one in opened.metadata.snapshots)
        chores = due(figures_of(current.summary.additional_properties, old))
    for chore in chores:
        for statement in _statements(chore, tables, task, cutoff):
            spark.sql(statement)
    return chores


def _statements(chore: MaintenanceTask, tables: IcebergTarget, task: TableTask, cutoff: datetime) -> Iterator[str]:
    """Deletes of rows that were rewritten away lie on until they are rewritten, too, and the figures count them."""
    place = tables.place
    table = f"table => {text_literal(f'{quoted(place.namespace)}.{quoted(task.target)}')}"
    procedures = f"CALL {quoted(place.name)}.system"
    match chore:
        case MaintenanceTask.COMPACT:
            options = "map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"
            yield f"{procedures}.rewrite_data_files({table}, options => {options}{_sorted(_layout(task))})"
            yield f"{procedures}.rewrite_position_delete_files({table}, options => map('rewrite-all', 'true'))"
        case MaintenanceTask.EXPIRE:
            at = cutoff.strftime("%Y-%m-%d %H:%M:%S.%f")
            yield f"{procedures}.expire_snapshots({table}, older_than => TIMESTAMP '{at}', retain_last => 1)"


def _layout(task: TableTask) -> Sequence[str]:
    return task.rule.cluster_by or task.schema.key


def _sorted(layout: Sequence[str]) -> str:
    """Files whose key ranges overlap cannot be skipped by a merge, so what is rewritten is sorted anew."""
    order = ", ".join(quoted(name) for name in layout)
    return f", strategy => 'sort', sort_order => {text_literal(order)}" if order else ""
