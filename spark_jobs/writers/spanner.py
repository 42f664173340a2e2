"""Commits to Spanner: a batch that fits one transaction is written by the driver, a larger one in parts by Spark's
tasks or by the driver."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.former_columns import with_other_types
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.spanner.catalog import find_columns, has_value
from airflow_cdc_provider.targets.spanner.changes import Counts
from airflow_cdc_provider.targets.spanner.columns import stored_type
from airflow_cdc_provider.targets.spanner.copies import commit_copy, load, prepare
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.large_merge import apply_parts, end, end_merge, sweep
from airflow_cdc_provider.targets.spanner.merge import Exceeds, add_columns, begin_in_parts, merge_at_once
from airflow_cdc_provider.targets.spanner.names import column_name
from airflow_cdc_provider.targets.spanner.parts import PartKey, PartsOf, SavedRows, save
from airflow_cdc_provider.targets.spanner.rows import Stored
from airflow_cdc_provider.targets.spanner.session import Session
from airflow_cdc_provider.targets.spanner.sizes import COMMIT_BYTES, CONTROL_MUTATIONS, collect
from airflow_cdc_provider.targets.spanner.target import SpannerTarget
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.copies.spooled_rows import SpooledRows
from spark_jobs.writers.expected_states import state_before_copy, state_before_merge, translate_lost_race
from spark_jobs.writers.spanner_reads import read_table
from spark_jobs.writers.task_results import on_files, on_partitions
from spark_jobs.writers.writer import CopyCommit, MergeCounts, merge_plan

LoadCopy = Callable[[Stored], int]
"""Loads all rows of a copy into its shadow table, and returns their number."""

MergeParts = Callable[[Session, Stored, MergePlan, ControlRecord, TargetState], Counts]
"""Merges a batch that exceeds one transaction."""


class SpannerWriter:
    """One per table and session."""

    def __init__(self, session: Callable[[], SparkSession], tables: SpannerTarget) -> None:
        self._spark_session = session
        self.tables = tables
        self.database = tables.database

    @property
    def spark(self) -> SparkSession:
        return self._spark_session()

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        """The rows as of one time. If another commit comes first, a batch that was built on them is rejected by its own
        commit. Without columns that the table lacks: somebody has renamed a former one."""
        current = self.tables.state(task.table, task.target)
        schema = current.control.schema if current.control and current.control.schema else task.schema
        with self.database.session("probe") as session:
            found = {name.lower() for name in find_columns(session, task.target)}
        present = (column for column in schema.columns if column_name(column.name).lower() in found)
        schema = replace(schema, columns=tuple(present))
        soft = task.rule.on_delete is OnDelete.SOFT
        return read_table(self.spark, self.database, Stored(task.target, schema, soft, self.database.options.json))

    def taken_names(self, task: TableTask, added: Sequence[Column], with_values: bool) -> list[str]:
        with self.database.session("probe") as session:
            found = {name.lower() for name in find_columns(session, task.target)}
            present = [column for column in added if column_name(column.name).lower() in found]
            former = task.control.former if task.control else {}
            others = with_other_types(former, present, lambda name: column_name(name).lower(), self._stored_type)
            names = [column.name for column in present if column.name not in others] if with_values else []
            return [*others, *(name for name in names if has_value(session, task.target, column_name(name)))]

    def _stored_type(self, column: Column) -> str:
        return stored_type(column.type, in_key=False, json=self.database.options.json)

    # Copies

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        frame = rows.frame()
        most = self.database.options.max_mutations

        def load_in_tasks(shadow: Stored) -> int:
            return sum(on_partitions(frame, partial(_load, self.database, shadow, most)))

        return partial(self._copy, task, load_in_tasks)

    def copy_locally(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        """Raises NeedsSpark before any row is read."""
        if rows.in_driver is None:
            raise NeedsSpark("a comparison with the old rows")
        splits = rows.in_driver(SpooledRows).results
        most = self.database.options.max_mutations

        def load_in_driver(shadow: Stored) -> int:
            return sum(_load(self.database, shadow, most, part, split.batches()) for part, split in enumerate(splits))

        return partial(self._copy, task, load_in_driver)

    def _copy(self, task: TableTask, load_rows: LoadCopy, record: ControlRecord) -> int:
        """A crash before the commit leaves the old table, or none; after it, the next process that reads the state
        gives the new copy the table's name. A token that does not increase, or that another attempt has claimed, is
        rejected: the caller has to raise the fence."""
        current = state_before_copy(self.tables, task, record)
        schema, soft = record.schema or task.schema, task.rule.on_delete is OnDelete.SOFT
        with translate_lost_race(self.tables, task, current, record):
            shadow = prepare(self.database, task.target, schema, soft, current, record)
            rows = load_rows(shadow)
            commit_copy(self.database, task.target, shadow.table, replace(record, rows=rows))
            self.tables.state(task.table, task.target)
        return rows

    # Merges

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already written to the change log. A crash before the commit, or before a merge of several
        transactions has begun, changes nothing. After it, the cursor prevents a second application of the batch."""

        def in_tasks(
            session: Session, stored: Stored, plan: MergePlan, record: ControlRecord, current: TargetState
        ) -> Counts:
            parts = PartsOf(stored.table, record.nonce)
            results = on_files(rows, partial(_save, self.database, parts, stored, plan))
            saved = sum((from_plain(SavedRows, result) for result in results), SavedRows())
            begin_in_parts(self.tables, session, stored, saved, plan, current, record)
            sweep(self.database.options, session, parts)
            self._apply_in_tasks(parts, saved.parts)
            return end(self.database, session, parts)

        return self._merge(task, rows, record, in_tasks)

    def merge_locally(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """Raises NeedsSpark."""

        def in_driver(
            session: Session, stored: Stored, plan: MergePlan, record: ControlRecord, current: TargetState
        ) -> Counts:
            parts, most = PartsOf(stored.table, record.nonce), self.database.options.max_mutations
            with rows.table() as table:
                saved = save(session, parts, stored, plan, uuid.uuid4().hex, [_by_key(table, stored)], most)
            begin_in_parts(self.tables, session, stored, saved, plan, current, record)
            return end_merge(self.database, session, stored.table)

        return self._merge(task, rows, record, in_driver)

    def _merge(self, task: TableTask, rows: StagedRows, record: ControlRecord, in_parts: MergeParts) -> MergeCounts:
        current, batch = state_before_merge(self.tables, task, rows, record), rows.batch
        stored = Stored(task.target, batch.schema, task.rule.on_delete is OnDelete.SOFT, self.database.options.json)
        with (
            translate_lost_race(self.tables, task, current, record),
            self.database.session(f"merge {record.window}") as session,
        ):
            plan = add_columns(self.database, session, task.target, merge_plan(task, batch, batch.added))
            failpoint("merge.before_submit")
            counts = self._at_once(session, stored, rows, plan, record, current)
            if counts is None:
                counts = in_parts(session, stored, plan, record, current)
        return MergeCounts(counts.inserted, counts.updated, counts.deleted)

    def _at_once(
        self,
        session: Session,
        stored: Stored,
        rows: StagedRows,
        plan: MergePlan,
        record: ControlRecord,
        current: TargetState,
    ) -> Counts | None:
        """None if the batch exceeds one transaction."""
        if rows.batch.rows > self.database.options.max_mutations - CONTROL_MUTATIONS:
            return None
        table = collect(rows.batches(), rows.columns, COMMIT_BYTES)
        if table is None:
            return None
        try:
            return merge_at_once(self.tables, session, stored, table, plan, current, record)
        except Exceeds:
            return None

    def _apply_in_tasks(self, parts: PartsOf, saved: Sequence[PartKey]) -> None:
        """Phase by phase."""
        context = self.spark.sparkContext
        for phase in sorted({part.phase for part in saved}):
            names = [to_plain(part) for part in saved if part.phase == phase]
            frame = self.spark.createDataFrame(
                [(str(one["task"]), int(one["number"])) for one in names], "task STRING, number BIGINT"
            )
            frame = frame.repartition(min(len(names), context.defaultParallelism))
            on_partitions(frame, partial(_apply, self.database, parts, phase))

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        """Does nothing: Spanner's upkeep is its own."""
        return ()


def _load(database: SpannerDatabase, shadow: Stored, most: int, part: int, batches: Iterable[pa.RecordBatch]) -> int:
    with database.session("load") as session:
        return load(session, shadow, part, batches, most)


def _save(
    database: SpannerDatabase,
    parts: PartsOf,
    stored: Stored,
    plan: MergePlan,
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Any:
    """Under the name of this try of the task."""
    tables = (_by_key(pa.Table.from_batches([batch]), stored) for batch in batches)
    with database.session("save") as session:
        saved = save(session, parts, stored, plan, uuid.uuid4().hex, tables, database.options.max_mutations)
    return to_plain(saved)


def _by_key(rows: pa.Table, stored: Stored) -> pa.Table:
    """Neighbours are written together, which is the fastest."""
    keys = [(name, "ascending") for name in stored.schema.key]
    return rows.sort_by(keys) if keys else rows


def _apply(
    database: SpannerDatabase, parts: PartsOf, phase: int, partition: int, batches: Iterable[pa.RecordBatch]
) -> int:
    keys = [PartKey(phase, row["task"], row["number"]) for batch in batches for row in batch.to_pylist()]
    apply_parts(database, parts, keys)
    return len(keys)
