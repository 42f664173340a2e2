"""Commits to Delta tables by this process itself: small batches into plain tables, and copies that come in shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.targets.delta.ddl import needs_column_mapping, table_properties
from airflow_cdc_provider.targets.delta.local_engine.copy import (
    Add,
    FileLayout,
    ReplacedVersion,
    existing_table,
    layout_of,
    new_table,
    prepared_copy,
    write_files,
)
from airflow_cdc_provider.targets.delta.local_engine.merge import Label, Prepared, TokenPassed, prepare
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import expected_columns
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.fencing import is_ours, overtaken_by
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.writers.writer import CopyCommit, MergeCounts

TRIES = 5
"""Commits of others that change nothing of ours may come first."""


class DeltaLocalWriter:
    def __init__(self, tables: DeltaTarget) -> None:
        self.tables = tables

    def merge(
        self, task: TableTask, rows: StagedRows, plan: MergePlan, record: ControlRecord, before: TargetState
    ) -> MergeCounts | None:
        """None where table or batch are not simple enough or too large for that, or where others commit to the table
        all the time."""
        with rows.table() as staged:
            return None if staged is None else self._merge(task, staged, plan, record, before)

    def _merge(
        self, task: TableTask, staged: pa.Table, plan: MergePlan, record: ControlRecord, before: TargetState
    ) -> MergeCounts | None:
        for _ in range(TRIES):
            try:
                with self.tables.answers(task.target):
                    prepared = prepare(self.tables.store, task.target, staged, plan, self._label(record))
            except TokenPassed:
                raise overtaken_by(self.tables.state(task.table, task.target), record) from None
            if prepared is None:
                return None
            error = self._merge_error(task, prepared)
            after = self.tables.state(task.table, task.target)
            if is_ours(after, record):
                return MergeCounts(prepared.inserted, prepared.updated, prepared.deleted)
            if error is not None:
                raise error
            if after.token != before.token or after.restored:
                raise overtaken_by(after, record)
        return None

    def copy(self, task: TableTask, rows: CopiedRows, before: TargetState) -> CopyCommit | None:
        """All rows are in files when this returns. None, before any was read, where they come otherwise or the table
        asks for more."""
        if rows.each_split is None or needs_column_mapping(task.schema.names):
            return None
        place = self._place(task, before)
        if place is None:
            return None
        layout = layout_of(place, rows.order, rows.high_cardinality)
        written = rows.each_split(
            partial(_written_files, self.tables.location, self.tables.connection, task.target, layout)
        )
        adds = [add for files in written.results for add in files]
        return partial(self._commit_copy, task, adds, written.rows)

    def _commit_copy(self, task: TableTask, adds: Sequence[Add], rows: int, record: ControlRecord) -> int:
        held = self.tables.state(task.table, task.target)
        for _ in range(TRIES):
            place = self._place(task, held)
            if place is None:
                break
            try:
                prepared = prepared_copy(self.tables.store, task.target, place, adds, rows, self._label(record))
            except TokenPassed:
                break
            error = self._copy_error(task, prepared)
            held = self.tables.state(task.table, task.target)
            if is_ours(held, record):
                return rows
            if error is not None:
                raise error
        raise overtaken_by(self.tables.state(task.table, task.target), record)

    def _place(self, task: TableTask, held: TargetState) -> ReplacedVersion | None:
        columns = tuple(expected_columns(task.schema, task.rule.on_delete is OnDelete.SOFT))
        properties = table_properties(task.schema, (*task.schema.key, *task.rule.cluster_by))
        if not held.exists:
            return new_table(columns, properties)
        with self.tables.answers(task.target):
            return existing_table(self.tables.store, task.target, columns, properties)

    def _label(self, record: ControlRecord) -> Label:
        return Label(self.tables.app_id(record.table), record.token, record_text(record))

    def _merge_error(self, task: TableTask, prepared: Prepared) -> Exception | None:
        """Whatever was raised, only the table can tell whether the commit stands."""
        try:
            failpoint("merge.before_commit")
            with self.tables.answers(task.target):
                prepared.commit()
            failpoint("merge.after_commit")
        except Exception as error:
            return error
        return None

    def _copy_error(self, task: TableTask, prepared: Prepared) -> Exception | None:
        """Here, too, only the table can tell whether the commit stands."""
        try:
            failpoint("overwrite.before")
            with self.tables.answers(task.target):
                prepared.commit()
            failpoint("overwrite.after")
        except Exception as error:
            return error
        return None


def _written_files(
    location: str, connection: ConnectionInfo, table: str, layout: FileLayout, rows: Iterable[pa.Table]
) -> list[Add]:
    """Runs wherever a share is read."""
    return write_files(open_store(location, connection), table, rows, layout)
