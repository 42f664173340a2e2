"""Rows of a target that are no longer in the source, and how many of them may be deleted without approval."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source_features import ReportsChanges, StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.operator_decisions import find_delete_approval
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.reported_changes import IN_STREAM
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.runtime.job import Job, TableWork


@dataclass(frozen=True)
class MissingRows:
    """``rows`` of ``of`` live rows of the target are not in the source."""

    rows: int
    of: int

    @property
    def fraction(self) -> float:
        return self.rows / self.of if self.of else 0.0


def live_rows(rows: DataFrame) -> DataFrame:
    return rows.where(~F.col("_cdc_deleted")) if "_cdc_deleted" in rows.columns else rows


def keeps_missing_rows(job: Job, task: TableTask) -> bool:
    """Whether rows that left the source stay in the copy, unmarked. Where the source reports no TRUNCATE that could be
    ignored, they were deleted."""
    if task.rule.ignores_deletes or not task.rule.ignores_truncates:
        return task.rule.ignores_deletes
    source = job.source
    return not isinstance(source, ReportsChanges) or source.reported_changes.truncate in IN_STREAM


def absent_rows(key: tuple[str, ...], old: DataFrame, new: DataFrame) -> DataFrame:
    """Rows of ``old`` whose key is not in ``new``, of which only the key columns are read."""
    return _by_key(key, old, new, "left_anti")


def present_rows(key: tuple[str, ...], old: DataFrame, new: DataFrame) -> DataFrame:
    """Rows of ``old`` whose key is in ``new``, of which only the key columns are read."""
    return _by_key(key, old, new, "left_semi")


def _by_key(key: tuple[str, ...], old: DataFrame, new: DataFrame, join: str) -> DataFrame:
    keys = new.select(*(F.col(quoted(name)) for name in key)).alias("new")
    same = [F.col(f"old.{quoted(name)}").eqNullSafe(F.col(f"new.{quoted(name)}")) for name in key]
    return old.alias("old").join(keys, same, join)


def require_delete_approval(
    job: Job, work: TableWork, control: ControlRecord, missing: MissingRows, operation: str
) -> None:
    """Raises Blocked where ``operation`` would delete more rows than allowed without approval; nothing was written. The
    rows that a feed does not copy come back with its changes."""
    allowed, task = job.step.definition.resync.max_delete, work.task
    if missing.fraction <= allowed:
        return
    if find_delete_approval(job.log.decisions(), task.table, control.state, task.resyncs):
        return
    name, table = job.step.definition.name, task.table
    found = f"{missing.fraction:.0%} of the rows are not in the source; a missing permission looks the same"
    if isinstance(job.source, StreamHoldsSnapshots):
        found = "a feed copies no rows: the table is empty until all changes have been applied again"
    raise Blocked.of(
        "CPY004",
        f"the {operation} of {table} would delete {missing.rows:,} of {missing.of:,} rows",
        where=job.tables.locate(task.target),
        found=found,
        allowed=f"resync.max_delete: {allowed:.0%}",
        do=f"check the source; to delete the rows: airflow cdc resync {name} --table {in_shell(table)} --yes {name}",
        data="the target is unchanged; the change log continues",
    )
