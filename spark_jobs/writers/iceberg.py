"""Commits to Iceberg tables: rows are written to the attempt's own branch, then the branch becomes the table.

Iceberg commits a MERGE on top of any commits that came first, so a MERGE never writes to the table's main line. It
writes to a branch that starts from the snapshot it is based on; a compare-and-set of the catalog makes the branch
current.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import schema_delta
from airflow_cdc_provider.core.table.own_rows import own_rows
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.common_checks import foreign_table, rows_do_not_fit
from airflow_cdc_provider.targets.fencing import has_commit, superseded_by
from airflow_cdc_provider.targets.iceberg.catalog import create_catalog, spark_settings
from airflow_cdc_provider.targets.iceberg.commits import branch_name
from airflow_cdc_provider.targets.iceberg.ddl import TABLE_PROPERTIES, SchemaChange, add_columns, schema_change
from airflow_cdc_provider.targets.iceberg.record_properties import snapshot_properties, table_properties
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql, own_condition
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.versioned import SHARED_TRIES
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.writers.expected_states import require_fit
from spark_jobs.writers.former_columns import taken_in
from spark_jobs.writers.iceberg_maintenance import maintain
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.shared_tables import require_equal_types, require_same_use
from spark_jobs.writers.writer import CopyCommit, MergeCounts, merge_plan

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
Result = TypeVar("Result")

MERGE_SETTINGS = {
    # The defaults let Spark sort and shuffle the whole target to join it with a small batch.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
}
CREATE_CATALOG_LOCK = threading.Lock()
"""First copies of several tables create the same namespace. Java's library is not atomic there: concurrent calls would
fail."""

TRIES = 3
"""How often a merge is tried if commits of other writers, such as a compaction, come first."""
LOST_RACE = "org.apache.iceberg.exceptions.CommitFailedException"
ALTER_TRIES = 20
"""How often a statement without rows is tried if commits of other writers come first."""


class IcebergWriter:
    """One per table and session: the catalog is configured in the session's settings."""

    def __init__(self, session: Callable[[], SparkSession], tables: IcebergTarget) -> None:
        self.spark = session()
        self.tables = tables
        for name, value in spark_settings(tables.catalog_location).items():
            self.spark.conf.set(name, value)

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        at = "" if version is None else f" VERSION AS OF {version}"
        rows = self.spark.sql(f"SELECT * FROM {self._name(task)}{at}")
        own = own_rows(task.rule)
        return rows.where(own_condition(own)) if own else rows

    def taken_names(self, task: TableTask, added: Sequence[Column], with_values: bool) -> list[str]:
        return taken_in(self.read(task, None), added, with_values, stored_type)

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        return partial(self._copy_in_turn, task, rows.frame())

    def _copy_in_turn(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> int:
        with self._turn(task):
            return self._copy(task, frame, record)

    def _copy(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> int:
        """A new table is created with its rows and its record in one commit; an existing one gets them, and changed
        columns, from a branch. A crash before the commit leaves the old table, or none. In a table that other copies
        share, it is repeated where their commits come first."""
        current = self.tables.state(task.table, task.target)
        if current.exists and current.token is None:
            raise ForeignTarget(foreign_table(self.tables.locate(task.target)))
        require_same_use(task, current, self.tables.locate(task.target))
        if (current.token is not None and record.token <= current.token) or not self.tables.log.write_control(record):
            raise superseded_by(current, record)
        for _ in range(SHARED_TRIES if task.rule.shard_column else 1):
            if not current.exists and not current.shared:
                self._create(task, frame, record)
            else:
                self._replace(task, frame, current, record)
            current = self.tables.state(task.table, task.target)
            if has_commit(current, record):
                return int(self.tables.summary(task.target, record).get("added-records", 0))
            if not current.shared or (current.token or 0) >= record.token:
                break
        raise superseded_by(current, record)

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        with self._turn(task):
            return self._merge(task, rows, record)

    def _merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already written to the change log. A crash before the branch is published changes nothing;
        after it, the cursor is committed. After a commit of another writer that is no fence, the merge starts again on
        top of it."""
        batch, staged = rows.batch, "staged_rows"
        plan = merge_plan(task, batch, _repeated(partial(self._add_columns, task, batch.added)))
        rows.frame.createOrReplaceTempView(staged)
        statement = merge_sql(f"{self._name(task)}.{quoted('branch_' + branch_name(record))}", staged, plan)
        for _ in range(SHARED_TRIES if task.rule.shard_column else TRIES):
            before = self.tables.state(task.table, task.target)
            if not _can_commit(before, record) or before.control is None or before.control.window != batch.lo_window:
                raise superseded_by(before, record)
            require_fit(before)
            self._merge_on_branch(task, rows.spark, statement, before, record)
            failpoint("merge.before_commit")
            if self.tables.publish(task.target, before, record):
                failpoint("merge.after_commit")
                return self._counts(task, record)
        raise superseded_by(self.tables.state(task.table, task.target), record)

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
            # A commit to the table drops the branches of all other attempts, even under a running MERGE.
            after = self.tables.state(task.table, task.target)
            if not _can_commit(after, record):
                raise superseded_by(after, record) from None
            raise

    def _cut_branch(self, task: TableTask, current: TargetState, record: ControlRecord) -> None:
        branch = quoted(branch_name(record))
        statement = f"ALTER TABLE {self._name(task)} CREATE OR REPLACE BRANCH {branch} AS OF VERSION {current.version}"
        _repeated(lambda: self.spark.sql(statement))

    def _create(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> None:
        location = self.tables.catalog_location
        with CREATE_CATALOG_LOCK:
            if location.warehouse:
                create_catalog(location)
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(location.name)}.{quoted(location.namespace)}")
        writer = frame.writeTo(self._name(task)).using("iceberg")
        for name, value in (TABLE_PROPERTIES | table_properties(record)).items():
            writer = writer.tableProperty(name, value)
        for name, value in snapshot_properties(record).items():
            writer = writer.option(f"snapshot-property.{name}", value)
        with self._translate_lost_race(task, TargetState(exists=False), record):
            writer.create()

    def _replace(self, task: TableTask, frame: DataFrame, current: TargetState, record: ControlRecord) -> None:
        own = own_rows(task.rule) if current.shared else None
        change = _repeated(lambda: self._change_columns(task, frame, add_only=own is not None))
        branch = f"{self._name(task)}.{quoted('branch_' + branch_name(record))}"
        with self._translate_lost_race(task, current, record):
            self._cut_branch(task, current, record)
            writer = self._as_target_columns(task, frame, change).writeTo(branch)
            for name, value in snapshot_properties(record).items():
                writer = writer.option(f"snapshot-property.{name}", value)
            if own is None:
                writer.overwrite(F.lit(True))
            else:  # by rows: a file may contain rows of others, or only the beginnings of long values as its bounds
                self.spark.sql(f"DELETE FROM {branch} WHERE {own_condition(own)}")
                writer.append()
            self.tables.publish(task.target, current, record, change.published)

    def _change_columns(self, task: TableTask, frame: DataFrame, add_only: bool) -> SchemaChange:
        """Adds the columns that the table lacks. What else changes is for the commit."""
        kinds = {field.name: _table_type(field.dataType) for field in frame.schema.fields}
        change = schema_change(self._columns(task), kinds)
        if add_only:
            change = self._as_added(task, change)
        if change.added:
            self.spark.sql(add_columns(self._name(task), change.added))
        return change

    def _as_added(self, task: TableTask, change: SchemaChange) -> SchemaChange:
        """In a table that other copies share, columns are added only. Raises Blocked (TGT090) where others have another
        type."""
        for name, new in change.written_as.items():
            kinds = f"column {name} is {self._columns(task).get(name)}, and {dict(change.added)[new]} in {task.table}"
            raise rows_do_not_fit(task.table, self.tables.locate(task.target), kinds)
        return SchemaChange(change.added, {}, {})

    def _as_target_columns(self, task: TableTask, frame: DataFrame, change: SchemaChange) -> DataFrame:
        """The copy under the names it is written by; columns that the copy lacks are empty."""
        frame = frame.withColumnsRenamed(dict(change.written_as))
        written = {name.lower() for name in frame.columns}
        empty = {
            name: F.lit(None).cast(kind) for name, kind in self._columns(task).items() if name.lower() not in written
        }
        return frame.withColumns(empty) if empty else frame

    def _columns(self, task: TableTask) -> dict[str, str]:
        return {field.name: _table_type(field.dataType) for field in self.read(task, None).schema.fields}

    def _add_columns(self, task: TableTask, added: tuple[Column, ...]) -> tuple[Column, ...]:
        """Add the columns that the table lacks. Returns those that are new to it."""
        if not added:
            return ()
        present = self.read(task, None)
        require_equal_types(task, present, added, self.tables.locate(task.target), stored_type)
        change = schema_delta(added, present.columns)
        if change.missing:
            kinds = tuple((column.name, column_type(column.type)) for column in change.missing)
            self.spark.sql(add_columns(self._name(task), kinds))
        return change.added

    def _counts(self, task: TableTask, record: ControlRecord) -> MergeCounts:
        summary = self.tables.summary(task.target, record)
        prefix = "spark.merge-into.num-target-rows-"
        return MergeCounts(*(int(summary.get(prefix + effect, 0)) for effect in ("inserted", "updated", "deleted")))

    def _turn(self, task: TableTask) -> AbstractContextManager[object]:
        """A commit of another copy in the table makes a merge start again: the copies of one driver take turns."""
        return self.tables.turns[task.target] if task.rule.shard_column else contextlib.nullcontext()

    def _name(self, task: TableTask) -> str:
        location = self.tables.catalog_location
        return ".".join(map(quoted, (location.name, location.namespace, task.target)))

    @contextlib.contextmanager
    def _translate_lost_race(self, task: TableTask, before: TargetState, record: ControlRecord) -> Iterator[None]:
        try:
            yield
        except (Py4JJavaError, PySparkException):
            after = self.tables.state(task.table, task.target)
            if has_commit(after, record):
                return
            if task.rule.shard_column and (after.token or 0) < record.token and after != before:
                return  # a commit of another copy came first
            if after != before:
                raise superseded_by(after, record) from None
            raise


def _repeated(alter: Callable[[], Result]) -> Result:
    """Repeats a statement that another writer's commit came before: Java's library repeats writes of rows only."""
    for _ in range(ALTER_TRIES - 1):
        try:
            return alter()
        except (Py4JJavaError, PySparkException) as error:
            if LOST_RACE not in str(error):
                raise
    return alter()


def _can_commit(current: TargetState, record: ControlRecord) -> bool:
    """Whether no other writer has raised the token or restored the table."""
    return current.token is not None and current.token < record.token and not current.restored


def _as_settings(record: ControlRecord) -> dict[str, str]:
    return {f"{SNAPSHOT_PROPERTY}{name}": value for name, value in snapshot_properties(record).items()}


def _table_type(data_type: object) -> str:
    """The column type in the table: Iceberg has no integers below 32 bits."""
    return stored_type(data_type.simpleString())  # type: ignore[attr-defined]


def stored_type(kind: str) -> str:
    return {"tinyint": "int", "smallint": "int"}.get(kind, kind)


@contextlib.contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets them for one statement only: they would apply to later writes of the session, too."""
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
