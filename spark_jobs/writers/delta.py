"""Commits to Delta tables: data, token and control record in one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan, schema_delta
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.common_checks import not_ours
from airflow_cdc_provider.targets.delta.ddl import (
    COLUMN_MAPPING,
    add_columns,
    needs_column_mapping,
    switch_on_column_mapping,
    table_properties,
    without_statistics,
)
from airflow_cdc_provider.targets.delta.names import path_table
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.fencing import is_ours, overtaken_by
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.runtime.sessions import MAX_INTERPRETED_ROWS, disable_codegen
from spark_jobs.writers.catalog_names import ensure_registered, require_free
from spark_jobs.writers.delta_local import DeltaLocalWriter
from spark_jobs.writers.delta_maintenance import maintain
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.writer import CopyCommit, MergeCounts, merge_plan

APP_ID = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
MATERIALIZE = "spark.databricks.delta.merge.materializeSource"

LOST_RACE = (
    DeltaConcurrentModificationException,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
"""Another commit came first. In Java the first of these is above the others, in Python it is not."""

SMALL_TABLE_ROWS = 200_000
"""Few rows go into a table up to this size without compiled code."""


class DeltaWriter:
    """One per table and session: Delta takes the token of a MERGE from the session's settings."""

    def __init__(self, session: Callable[[], SparkSession], tables: DeltaTarget) -> None:
        self._session = session
        self.tables = tables
        self._here = DeltaLocalWriter(tables)

    @property
    def spark(self) -> SparkSession:
        return self._session()

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.tables.locate(task.target))

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        commit = self._here.copy(task, rows, self._held(task)) or partial(self._copy_in_spark, task, rows.frame())
        return partial(self._copy, task, commit)

    def _copy(self, task: TableTask, commit: CopyCommit, record: ControlRecord) -> int:
        """Died before the commit: the old table stands, or none. A token that does not grow is refused, and so is one
        that another attempt has named: the caller has to raise the fence."""
        held = self._held(task)
        if self.tables.catalog:
            require_free(self.spark, self.tables.catalog, task.target, self.tables.locate(task.target))
        if (held.token is not None and record.token <= held.token) or not self.tables.log.write_control(record):
            raise overtaken_by(held, record)
        number = commit(record)
        self._register(task)
        return number

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already named in the change log. Died before the commit: nothing happened. Died after it: the
        token stands, and the same batch can never apply twice."""
        self._register(task)
        with self._losing_is_fenced(task, record):
            added = self._grow(task, rows.batch.added)
        plan = merge_plan(task, rows.batch, added)
        before = self.tables.state(task.table, task.target)
        counts = self._here.merge(task, rows, plan, record, before)
        return counts or self._merge_in_spark(task, rows, plan, record, before)

    def _copy_in_spark(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> int:
        schema = task.schema
        writer = (
            frame.write.format("delta")
            .mode("overwrite")
            .options(**table_properties(schema, (*schema.key, *task.rule.cluster_by)))
            .option("overwriteSchema", "true")
            .option("txnAppId", self.tables.app_id(task.table))
            .option("txnVersion", record.token)
            .option("userMetadata", record_text(record))
        )
        with self._losing_is_fenced(task, record):
            self._take_any_name(task, schema.names)
            self._let_columns_go(task)
            failpoint("overwrite.before")
            writer.save(self.tables.locate(task.target))
            failpoint("overwrite.after")
        self._require_ours(task, record)
        return self.tables.rows_written(task.target, record)

    def _merge_in_spark(
        self, task: TableTask, rows: StagedRows, plan: MergePlan, record: ControlRecord, before: TargetState
    ) -> MergeCounts:
        staged = "staged_rows"
        rows.frame.createOrReplaceTempView(staged)
        if rows.batch.rows <= MAX_INTERPRETED_ROWS and self.tables.is_small(task.target, SMALL_TABLE_ROWS):
            disable_codegen(rows.spark)
        statement = merge_sql(path_table(self.tables.locate(task.target)), staged, plan)
        for _ in range(2):
            counts = self._try_merge(task, rows.spark, statement, record)
            after = self.tables.state(task.table, task.target)
            if is_ours(after, record):
                return counts or MergeCounts()
            if after.token != before.token or after.restored:
                break
        raise overtaken_by(after, record)

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        return maintain(self._session, self.tables, task, keep)

    def _try_merge(
        self, task: TableTask, spark: SparkSession, statement: str, record: ControlRecord
    ) -> MergeCounts | None:
        """None where Delta refused the commit because of another one, skipped it because the token is not above the
        recorded one (an empty answer), or where its answer was lost."""
        try:
            failpoint("merge.before_commit")
            with (
                as_integrity_error(record.replicator, task.table, record.window),
                _token(spark, self.tables.app_id(task.table), record),
            ):
                rows = spark.sql(statement).collect()
            failpoint("merge.after_commit")
        except LOST_RACE:
            return None
        except (Py4JJavaError, PySparkException):
            if not is_ours(self.tables.state(task.table, task.target), record):
                raise
            return None
        if not rows:
            return None
        return MergeCounts(rows[0]["num_inserted_rows"], rows[0]["num_updated_rows"], rows[0]["num_deleted_rows"])

    def _grow(self, task: TableTask, added: tuple[Column, ...]) -> tuple[Column, ...]:
        """Add the columns the table lacks; returned are those that are new to it."""
        if not added:
            return ()
        grown = schema_delta(added, self.read(task, None).columns)
        if grown.missing:
            self._take_any_name(task, [column.name for column in grown.missing])
            self.spark.sql(add_columns(self.tables.locate(task.target), grown.missing))
        return grown.added

    def _take_any_name(self, task: TableTask, names: Sequence[str]) -> None:
        """A table that was made for plain names must be told before it gets a column whose name is not."""
        opened = self.tables.open(task.target) if needs_column_mapping(names) else None
        if opened is not None and COLUMN_MAPPING not in opened.metadata().configuration:
            self.spark.sql(switch_on_column_mapping(self.tables.locate(task.target)))

    def _let_columns_go(self, task: TableTask) -> None:
        opened = self.tables.open(task.target)
        if opened is None:
            return
        before = [field.name for field in opened.schema().fields]
        path, configuration = self.tables.locate(task.target), opened.metadata().configuration
        if statement := without_statistics(path, configuration, before, task.schema.names):
            self.spark.sql(statement)

    def _held(self, task: TableTask) -> TargetState:
        """Raises ForeignTarget where the table is none of ours."""
        held = self.tables.state(task.table, task.target)
        if held.exists and held.token is None:
            raise ForeignTarget(not_ours(self.tables.locate(task.target)))
        return held

    def _require_ours(self, task: TableTask, record: ControlRecord) -> None:
        held = self.tables.state(task.table, task.target)
        if not is_ours(held, record):
            raise overtaken_by(held, record)

    @contextlib.contextmanager
    def _losing_is_fenced(self, task: TableTask, record: ControlRecord) -> Iterator[None]:
        try:
            yield
        except LOST_RACE:
            self._require_ours(task, record)
        except (Py4JJavaError, PySparkException):
            if not is_ours(self.tables.state(task.table, task.target), record):
                raise

    def _register(self, task: TableTask) -> None:
        if self.tables.catalog:
            ensure_registered(self.spark, self.tables.catalog, task.target, self.tables.locate(task.target))


@contextlib.contextmanager
def _token(spark: SparkSession, app_id: str, record: ControlRecord) -> Iterator[None]:
    """The settings leak into every later write of the session, so they stand around one statement only."""
    settings = {
        APP_ID: app_id,
        VERSION: str(record.token),
        METADATA: record_text(record),
        MATERIALIZE: "none",
    }
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
