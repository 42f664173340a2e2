"""Commits to Iceberg tables: rows onto a branch of the attempt's own, then the branch becomes the table.

Iceberg itself lets a MERGE commit on top of whatever has come in between, so the MERGE is never let near the table's
main line. It writes to a branch that was cut from the snapshot it was decided on; what makes the branch current is a
compare-and-set of the catalog.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import schema_delta
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.common_checks import not_ours
from airflow_cdc_provider.targets.fencing import is_ours, overtaken_by
from airflow_cdc_provider.targets.iceberg.catalog import make_catalog, spark_settings
from airflow_cdc_provider.targets.iceberg.commits import branch_name
from airflow_cdc_provider.targets.iceberg.ddl import TABLE_PROPERTIES, Reshape, add_columns, reshape
from airflow_cdc_provider.targets.iceberg.record_text import snapshot_properties, table_properties
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.writers.iceberg_maintenance import maintain
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.writer import CopyCommit, MergeCounts, merge_plan

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
MERGE_SETTINGS = {
    # Without them Spark sorts and shuffles the whole target to join it with a small batch.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
}
MAKING_CATALOG = threading.Lock()
"""First copies of several tables meet at a namespace that is not there yet. Java's library looks first and makes it
then: two at once would fail."""

TRIES = 3
"""How often a merge is done over because somebody else's commit (a compaction, say) came in between."""


class IcebergWriter:
    """One per table and session: a session knows the catalog by settings of its own."""

    def __init__(self, session: Callable[[], SparkSession], tables: IcebergTarget) -> None:
        self.spark = session()
        self.tables = tables
        for name, value in spark_settings(tables.place).items():
            self.spark.conf.set(name, value)

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        at = "" if version is None else f" VERSION AS OF {version}"
        return self.spark.sql(f"SELECT * FROM {self._name(task)}{at}")

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        return partial(self._copy, task, rows.frame())

    def _copy(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> int:
        """A table that is not there is made with its rows and its record at once; one of ours gets them by a branch,
        and other columns in the same commit. Died before the commit: the old table stands, or none."""
        held = self.tables.state(task.table, task.target)
        if held.exists and held.token is None:
            raise ForeignTarget(not_ours(self.tables.locate(task.target)))
        if (held.token is not None and record.token <= held.token) or not self.tables.log.write_control(record):
            raise overtaken_by(held, record)
        if not held.exists:
            self._create(task, frame, record)
        else:
            self._replace(task, frame, held, record)
        after = self.tables.state(task.table, task.target)
        if not is_ours(after, record):
            raise overtaken_by(after, record)
        return int(self.tables.summary(task.target, record).get("added-records", 0))

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already named in the change log. Died before the branch became the table: nothing happened.
        Died after it: the cursor stands. A commit of somebody else that is no fence makes us begin anew on top of it.
        """
        batch, staged = rows.batch, "staged_rows"
        plan = merge_plan(task, batch, self._grow(task, batch.added))
        rows.frame.createOrReplaceTempView(staged)
        statement = merge_sql(f"{self._name(task)}.{quoted('branch_' + branch_name(record))}", staged, plan)
        for _ in range(TRIES):
            before = self.tables.state(task.table, task.target)
            if not _may(before, record) or before.control is None or before.control.window != batch.lo_window:
                raise overtaken_by(before, record)
            self._merge_on_branch(task, rows.spark, statement, before, record)
            failpoint("merge.before_commit")
            if self.tables.publish(task.target, before, record):
                failpoint("merge.after_commit")
                return self._counts(task, record)
        raise overtaken_by(self.tables.state(task.table, task.target), record)

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        return maintain(self.spark, self.tables, task, keep)

    def _merge_on_branch(
        self, task: TableTask, spark: SparkSession, statement: str, before: TargetState, record: ControlRecord
    ) -> None:
        settings = {**MERGE_SETTINGS, **_as_settings(record)}
        try:
            self._cut_branch(task, before, record)
            with (
                as_integrity_error(record.replicator, task.table, record.window),
                _set(spark, settings),
            ):
                spark.sql(statement).collect()
        except (Py4JJavaError, PySparkException):
            # Whoever commits to the table drops the branches of all others, also under a MERGE that is under way.
            after = self.tables.state(task.table, task.target)
            if not _may(after, record):
                raise overtaken_by(after, record) from None
            raise

    def _cut_branch(self, task: TableTask, held: TargetState, record: ControlRecord) -> None:
        branch = quoted(branch_name(record))
        self.spark.sql(f"ALTER TABLE {self._name(task)} CREATE OR REPLACE BRANCH {branch} AS OF VERSION {held.version}")

    def _create(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> None:
        place = self.tables.place
        with MAKING_CATALOG:
            if place.warehouse:
                make_catalog(place)
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(place.name)}.{quoted(place.namespace)}")
        writer = frame.writeTo(self._name(task)).using("iceberg")
        for name, value in (TABLE_PROPERTIES | table_properties(record)).items():
            writer = writer.tableProperty(name, value)
        for name, value in snapshot_properties(record).items():
            writer = writer.option(f"snapshot-property.{name}", value)
        with self._losing_is_fenced(task, TargetState(exists=False), record):
            writer.create()

    def _replace(self, task: TableTask, frame: DataFrame, held: TargetState, record: ControlRecord) -> None:
        change = reshape(self._columns(task), {field.name: _kind(field.dataType) for field in frame.schema.fields})
        if change.added:
            self.spark.sql(add_columns(self._name(task), change.added))
        branch = f"{self._name(task)}.{quoted('branch_' + branch_name(record))}"
        with self._losing_is_fenced(task, held, record):
            self._cut_branch(task, held, record)
            writer = self._as_held(task, frame, change).writeTo(branch)
            for name, value in snapshot_properties(record).items():
                writer = writer.option(f"snapshot-property.{name}", value)
            writer.overwrite(F.lit(True))
            self.tables.publish(task.target, held, record, change.published)

    def _as_held(self, task: TableTask, frame: DataFrame, change: Reshape) -> DataFrame:
        """The copy under the names it is written by; columns that go with it are empty."""
        frame = frame.withColumnsRenamed(dict(change.written_as))
        written = {name.lower() for name in frame.columns}
        empty = {
            name: F.lit(None).cast(kind) for name, kind in self._columns(task).items() if name.lower() not in written
        }
        return frame.withColumns(empty) if empty else frame

    def _columns(self, task: TableTask) -> dict[str, str]:
        return {field.name: _kind(field.dataType) for field in self.read(task, None).schema.fields}

    def _grow(self, task: TableTask, added: tuple[Column, ...]) -> tuple[Column, ...]:
        """Add the columns the table lacks; returned are those that are new to it."""
        if not added:
            return ()
        grown = schema_delta(added, self.read(task, None).columns)
        if grown.missing:
            kinds = tuple((column.name, column_type(column.type)) for column in grown.missing)
            self.spark.sql(add_columns(self._name(task), kinds))
        return grown.added

    def _counts(self, task: TableTask, record: ControlRecord) -> MergeCounts:
        summary = self.tables.summary(task.target, record)
        told = "spark.merge-into.num-target-rows-"
        return MergeCounts(*(int(summary.get(told + what, 0)) for what in ("inserted", "updated", "deleted")))

    def _name(self, task: TableTask) -> str:
        return ".".join(quoted(part) for part in (self.tables.place.name, self.tables.place.namespace, task.target))

    @contextlib.contextmanager
    def _losing_is_fenced(self, task: TableTask, before: TargetState, record: ControlRecord) -> Iterator[None]:
        try:
            yield
        except (Py4JJavaError, PySparkException):
            after = self.tables.state(task.table, task.target)
            if is_ours(after, record):
                return
            if after != before:
                raise overtaken_by(after, record) from None
            raise


def _may(held: TargetState, record: ControlRecord) -> bool:
    """Nobody has taken the table over, and nobody took it back."""
    return held.token is not None and held.token < record.token and not held.restored


def _as_settings(record: ControlRecord) -> dict[str, str]:
    return {f"{SNAPSHOT_PROPERTY}{name}": value for name, value in snapshot_properties(record).items()}


def _kind(data_type: object) -> str:
    """The type a column gets in the table: Iceberg has no integers below 32 bits."""
    text = data_type.simpleString()  # type: ignore[attr-defined]
    return {"tinyint": "int", "smallint": "int"}.get(text, str(text))


@contextlib.contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Around one statement only: a session's later writes would carry them, too."""
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
