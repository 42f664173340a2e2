"""Rows of a target that the source does not hold any more, and how many of them may go unasked."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.operator_decisions import find_delete_approval
from airflow_cdc_provider.core.errors import Blocked, Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.runtime.job import Job, TableWork


@dataclass(frozen=True)
class MissingRows:
    """``rows`` of ``of`` live rows of the target that the source does not hold."""

    rows: int
    of: int

    @property
    def share(self) -> float:
        return self.rows / self.of if self.of else 0.0


def live(rows: DataFrame) -> DataFrame:
    return rows.where(~F.col("_cdc_deleted")) if "_cdc_deleted" in rows.columns else rows


def absent(key: tuple[str, ...], old: DataFrame, new: DataFrame) -> DataFrame:
    """Rows of the target whose key is not among those of the source. Only the key columns are read from the source."""
    keys = new.select(*(F.col(quoted(name)) for name in key)).alias("new")
    same = [F.col(f"old.{quoted(name)}").eqNullSafe(F.col(f"new.{quoted(name)}")) for name in key]
    return old.alias("old").join(keys, same, "left_anti")


def require_yes(job: Job, work: TableWork, control: ControlRecord, missing: MissingRows, what: str) -> None:
    """Raises Blocked where ``what`` would delete more than allowed, and nobody has said yes; nothing was written."""
    allowed = job.step.definition.resync.max_delete
    if missing.share <= allowed or find_delete_approval(job.log.decisions(), work.task.table, control.state):
        return
    name, table = job.step.definition.name, work.task.table
    raise Blocked(
        Problem(
            "CPY004",
            f"the {what} of {table} would delete {missing.rows:,} of {missing.of:,} rows",
            where=job.tables.locate(work.task.target),
            found=f"{missing.share:.0%} of the rows are not in the source: a lost permission looks like that, too",
            allowed=f"resync.max_delete: {allowed:.0%}",
            do=f"look at the source; if the rows are meant to go: airflow cdc resync {name} --table {table} --yes",
            data="the target is as it was; the change log goes on",
        )
    )
