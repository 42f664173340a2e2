"""Commits to Delta tables: data, token and control record in one commit."""

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
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan, schema_delta
from airflow_cdc_provider.core.table.own_rows import own_rows
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.common_checks import foreign_table
from airflow_cdc_provider.targets.delta.ddl import (
    COLUMN_MAPPING,
    add_columns,
    drop_statistics,
    enable_column_mapping,
    needs_column_mapping,
    table_properties,
)
from airflow_cdc_provider.targets.delta.names import path_table
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.fencing import has_commit, superseded, superseded_by
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql, own_condition
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.versioned import SHARED_TRIES
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.runtime.sessions import MAX_INTERPRETED_ROWS, disable_codegen, setting_text
from spark_jobs.writers.catalog_names import ensure_registered, require_name_free
from spark_jobs.writers.delta_local import DeltaLocalWriter
from spark_jobs.writers.delta_maintenance import maintain
from spark_jobs.writers.expected_states import require_fit
from spark_jobs.writers.former_columns import taken_in
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.refused_writes import require_accepted
from spark_jobs.writers.shared_tables import missing_columns, require_equal_types, require_same_use
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
"""Another commit came first. In Java the first class is the base of the others, in Python it is not."""

SMALL_TABLE_ROWS = 200_000
"""Largest table into which small batches are merged without compiled code."""


class DeltaWriter:
    """One per table and session: Delta takes the token of a MERGE from the session's settings."""

    def __init__(self, session: Callable[[], SparkSession], tables: DeltaTarget) -> None:
        self._session = session
        self.tables = tables
        self._local_writer = DeltaLocalWriter(tables)

    @property
    def spark(self) -> SparkSession:
        return self._session()

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        rows = reader.load(self.tables.locate(task.target))
        own = own_rows(task.rule)
        return rows.where(own_condition(own)) if own else rows

    def taken_names(self, task: TableTask, added: Sequence[Column], with_values: bool) -> list[str]:
        return taken_in(self.read(task, None), added, with_values)

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        """Spark's tasks write the files of a plain table without Spark SQL."""
        current = self._require_own_state(task)
        try:
            commit = self._local_writer.copy(task, rows, rows.in_tasks, current)
        except NeedsSpark:
            commit = partial(self._copy_in_spark, task, rows.frame())
        return partial(self._copy, task, commit, rows.taken_from)

    def copy_locally(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        current = self._require_own_state(task)
        commit = self._local_writer.copy(task, rows, rows.in_driver, current)
        return partial(self._copy, task, commit, rows.taken_from)

    def _copy(self, task: TableTask, commit: CopyCommit, taken_from: TargetState | None, record: ControlRecord) -> int:
        """A crash before the commit leaves the old table, or none. A token that does not increase, or that another
        attempt has claimed, is rejected: the caller has to raise the fence. So is a table of another owner
        (``taken_from``) that was written since its rows were read."""
        current = self._require_own_state(task)
        if taken_from is not None and current.version != taken_from.version:
            found = f"version {current.version} of another program, and {taken_from.version} when its rows were read"
            raise superseded(record, found)
        if self.tables.catalog:
            require_name_free(self.spark, self.tables.catalog, task.target, self.tables.locate(task.target))
        if (current.token is not None and record.token <= current.token) or not self.tables.log.write_control(record):
            raise superseded_by(current, record)
        row_count = commit(record)
        self._register(task)
        return row_count

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already written to the change log. A crash before the commit changes nothing. After it, the
        token prevents a second application of the batch."""
        self._register(task)
        with self._translate_lost_race(task, record):
            added = self._add_columns(task, rows.batch.added)
        before = self.tables.state(task.table, task.target)
        require_fit(before)
        return self._merge_in_spark(task, rows, merge_plan(task, rows.batch, added), record, before)

    def merge_locally(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        self._register(task)
        before = self.tables.state(task.table, task.target)
        require_fit(before)
        plan = merge_plan(task, rows.batch, rows.batch.added)
        return self._local_writer.merge(task, rows, plan, record, before)

    def _copy_in_spark(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> int:
        schema = task.schema
        writer = (
            frame.write.format("delta")
            .mode("overwrite")
            .option("txnAppId", self.tables.app_id(task.table))
            .option("txnVersion", record.token)
            .option("userMetadata", record_text(record))
        )
        own = own_rows(task.rule)
        if own and self._require_own_state(task).shared:
            return self._replace_own_rows(task, writer.option("replaceWhere", own_condition(own)), record)
        properties = table_properties(schema, (*schema.key, *task.cluster_by))
        writer = writer.options(**properties).option("overwriteSchema", "true")
        with self._translate_lost_race(task, record):
            self._enable_column_mapping(task, schema.names)
            self._drop_statistics(task)
            failpoint("overwrite.before")
            writer.save(self.tables.locate(task.target))
            failpoint("overwrite.after")
        self._require_commit(task, record)
        return self.tables.rows_written(task.target, record)

    def _replace_own_rows(self, task: TableTask, writer: DataFrameWriter, record: ControlRecord) -> int:
        """In a table that other copies share. The rows may be read again if commits of others come first."""
        location = self.tables.locate(task.target)
        for _ in range(SHARED_TRIES):
            missing = missing_columns(task, self.tables.open(task.target), location)
            try:
                if missing:
                    self._enable_column_mapping(task, [column.name for column in missing])
                    self.spark.sql(add_columns(location, missing))
                failpoint("overwrite.before")
                writer.save(location)
                failpoint("overwrite.after")
                break
            except LOST_RACE:
                continue
            except (Py4JJavaError, PySparkException) as error:
                if not has_commit(self.tables.state(task.table, task.target), record):
                    require_accepted(error, location)
                    raise
                break
        self._require_commit(task, record)
        return self.tables.rows_written(task.target, record)

    def _merge_in_spark(
        self, task: TableTask, rows: StagedRows, plan: MergePlan, record: ControlRecord, before: TargetState
    ) -> MergeCounts:
        staged = "staged_rows"
        rows.frame.createOrReplaceTempView(staged)
        if rows.batch.rows <= MAX_INTERPRETED_ROWS and self.tables.has_at_most_rows(task.target, SMALL_TABLE_ROWS):
            disable_codegen(rows.spark)
        statement = merge_sql(path_table(self.tables.locate(task.target)), staged, plan)
        for _ in range(SHARED_TRIES if before.shared else 2):
            counts = self._try_merge(task, rows.spark, statement, record)
            after = self.tables.state(task.table, task.target)
            if has_commit(after, record):
                return counts or MergeCounts()
            if after.token != before.token or after.restored:
                break
            require_fit(after)
        raise superseded_by(after, record)

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        return maintain(self._session, self.tables, task, keep)

    def _try_merge(
        self, task: TableTask, spark: SparkSession, statement: str, record: ControlRecord
    ) -> MergeCounts | None:
        """None if Delta rejected the commit because of another one, if Delta skipped it (an empty result) because the
        token is not above the recorded one, or if the response was lost."""
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
        except (Py4JJavaError, PySparkException) as error:
            if not has_commit(self.tables.state(task.table, task.target), record):
                require_accepted(error, self.tables.locate(task.target))
                raise
            return None
        if not rows:
            return None
        return MergeCounts(rows[0]["num_inserted_rows"], rows[0]["num_updated_rows"], rows[0]["num_deleted_rows"])

    def _add_columns(self, task: TableTask, added: tuple[Column, ...]) -> tuple[Column, ...]:
        """Add the columns that the table lacks. Returns those that are new to it."""
        if not added:
            return ()
        present = self.read(task, None)
        require_equal_types(task, present, added, self.tables.locate(task.target))
        change = schema_delta(added, present.columns)
        if change.missing:
            self._enable_column_mapping(task, [column.name for column in change.missing])
            self.spark.sql(add_columns(self.tables.locate(task.target), change.missing))
        return change.added

    def _enable_column_mapping(self, task: TableTask, names: Sequence[str]) -> None:
        """A table created without column mapping requires it before it gets a column with special characters."""
        delta_table = self.tables.open(task.target) if needs_column_mapping(names) else None
        if delta_table is not None and COLUMN_MAPPING not in delta_table.metadata().configuration:
            self.spark.sql(enable_column_mapping(self.tables.locate(task.target)))

    def _drop_statistics(self, task: TableTask) -> None:
        delta_table = self.tables.open(task.target)
        if delta_table is None:
            return
        columns = [field.name for field in delta_table.schema().fields]
        path, configuration = self.tables.locate(task.target), delta_table.metadata().configuration
        if statement := drop_statistics(path, configuration, columns, task.schema.names):
            self.spark.sql(statement)

    def _require_own_state(self, task: TableTask) -> TargetState:
        """Raises ForeignTarget if the table is not ours, and not to be taken over."""
        current = self.tables.state(task.table, task.target)
        if current.exists and current.token is None and not task.rule.snapshot.takes_over:
            raise ForeignTarget(foreign_table(self.tables.locate(task.target)))
        require_same_use(task, current, self.tables.locate(task.target))
        if current.shared:
            missing_columns(task, self.tables.open(task.target), self.tables.locate(task.target))
        return current

    def _require_commit(self, task: TableTask, record: ControlRecord) -> None:
        current = self.tables.state(task.table, task.target)
        if not has_commit(current, record):
            raise superseded_by(current, record)

    @contextlib.contextmanager
    def _translate_lost_race(self, task: TableTask, record: ControlRecord) -> Iterator[None]:
        try:
            yield
        except LOST_RACE:
            self._require_commit(task, record)
        except (Py4JJavaError, PySparkException) as error:
            if not has_commit(self.tables.state(task.table, task.target), record):
                require_accepted(error, self.tables.locate(task.target))
                raise

    def _register(self, task: TableTask) -> None:
        if self.tables.catalog:
            ensure_registered(self.spark, self.tables.catalog, task.target, self.tables.locate(task.target))


@contextlib.contextmanager
def _token(spark: SparkSession, app_id: str, record: ControlRecord) -> Iterator[None]:
    """Sets the token for one statement only: the settings would apply to later writes of the session, too."""
    settings = {
        APP_ID: setting_text(app_id),
        VERSION: str(record.token),
        METADATA: setting_text(record_text(record)),
        MATERIALIZE: "none",
    }
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
