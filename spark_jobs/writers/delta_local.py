"""Commits to Delta tables without Spark SQL: small batches, and copies in splits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.own_rows import own_rows
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.targets.delta.ddl import needs_column_mapping, table_properties
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, PreparedCommit, StaleToken
from airflow_cdc_provider.targets.delta.local_engine.copy import (
    Add,
    FileLayout,
    ReplacedVersion,
    existing_table,
    file_layout,
    new_table,
    prepare_copy,
    write_files,
)
from airflow_cdc_provider.targets.delta.local_engine.merge import prepare_merge
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import expected_columns
from airflow_cdc_provider.targets.delta.local_engine.shared_copy import own_version
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.fencing import has_commit, superseded_by
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.versioned import SHARED_TRIES
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows, EachSplit, Keep
from spark_jobs.copies.kept_splits import DELTA
from spark_jobs.writers.writer import CopyCommit, MergeCounts

TRIES = 5
"""Limit for retries after commits of other writers that do not concern ours."""


class DeltaLocalWriter:
    def __init__(self, tables: DeltaTarget) -> None:
        self.tables = tables

    def merge(
        self, task: TableTask, rows: StagedRows, plan: MergePlan, record: ControlRecord, before: TargetState
    ) -> MergeCounts:
        """Raises NeedsSpark."""
        with rows.table() as staged:
            return self._merge(task, staged, plan, record, before)

    def _merge(
        self, task: TableTask, staged: pa.Table, plan: MergePlan, record: ControlRecord, before: TargetState
    ) -> MergeCounts:
        for _ in range(SHARED_TRIES if before.shared else TRIES):
            try:
                with self.tables.translate_errors(task.target):
                    commit = prepare_merge(self.tables.store, task.target, staged, plan, self._commit_label(record))
            except StaleToken:
                raise superseded_by(self.tables.state(task.table, task.target), record) from None
            error = self._merge_error(task, commit)
            after = self.tables.state(task.table, task.target)
            if has_commit(after, record):
                return MergeCounts(commit.inserted, commit.updated, commit.deleted)
            if error is not None:
                raise error
            if after.token != before.token or after.restored:
                raise superseded_by(after, record)
        raise NeedsSpark("other writers commit all the time")

    def copy(self, task: TableTask, rows: CopiedRows, each_split: EachSplit | None, before: TargetState) -> CopyCommit:
        """``each_split``: of ``rows``. All rows are in files when this returns. Raises NeedsSpark before any row is
        read."""
        if each_split is None:
            raise NeedsSpark("a comparison with the old rows")
        if needs_column_mapping(task.schema.names):
            raise NeedsSpark("column names with special characters")
        replaced = self._replaced_version(task, before)
        layout = file_layout(replaced, rows.order, rows.high_cardinality)
        location, connection = self.tables.location, self.tables.connection
        keep = Keep(DELTA, partial(_are_present, location, connection, task.target))
        written = each_split(partial(_write_split, location, connection, task.target, layout), keep)
        adds = [add for files in written.results for add in files]
        return partial(self._commit_copy, task, adds, written.rows)

    def _commit_copy(self, task: TableTask, adds: Sequence[Add], rows: int, record: ControlRecord) -> int:
        self._require_files(task, adds)
        current = self.tables.state(task.table, task.target)
        for _ in range(SHARED_TRIES if current.shared else TRIES):
            try:
                replaced = self._replaced_version(task, current)
                commit = prepare_copy(self.tables.store, task.target, replaced, adds, rows, self._commit_label(record))
            except (StaleToken, NeedsSpark):
                break
            error = self._copy_error(task, commit)
            current = self.tables.state(task.table, task.target)
            if has_commit(current, record):
                return rows
            if error is not None:
                raise error
        raise superseded_by(self.tables.state(task.table, task.target), record)

    def _require_files(self, task: TableTask, adds: Sequence[Add]) -> None:
        """No version refers to them yet, and those of kept splits may be days old: a lifecycle rule or a clean-up may
        have removed them. Raises TargetUnavailable (CPY005); another attempt reads the splits again."""
        present = {file.path for file in self.tables.store.files(task.target)} if adds else set[str]()
        missing = [path for add in adds if (path := f"{task.target}/{add['path']}") not in present]
        if missing:
            raise TargetUnavailable.of(
                "CPY005",
                f"the copy of {task.table} is incomplete",
                where=self.tables.locate(task.target),
                found=f"{len(missing)} of {len(adds)} files were removed, the first: {missing[0]}",
                allowed="files that nothing else removes from the folder of the table",
                do="nothing: the next run reads their rows again; exclude the folder from clean-ups",
                data="nothing was committed",
            )

    def _replaced_version(self, task: TableTask, current: TargetState) -> ReplacedVersion:
        columns = tuple(expected_columns(task.schema, task.rule.on_delete is OnDelete.SOFT))
        properties = table_properties(task.schema, (*task.schema.key, *task.cluster_by))
        if not current.exists and not current.shared:
            return new_table(columns, properties)
        with self.tables.translate_errors(task.target):
            if current.shared and (own := own_rows(task.rule)):
                return own_version(self.tables.store, task.target, columns, own)
            return existing_table(self.tables.store, task.target, columns, properties)

    def _commit_label(self, record: ControlRecord) -> CommitLabel:
        return CommitLabel(self.tables.app_id(record.table), record.token, record_text(record))

    def _merge_error(self, task: TableTask, commit: PreparedCommit) -> Exception | None:
        """The error that was raised, if any. Only the table shows whether the commit succeeded."""
        try:
            failpoint("merge.before_commit")
            with self.tables.translate_errors(task.target):
                commit.commit()
            failpoint("merge.after_commit")
        except Exception as error:
            return error
        return None

    def _copy_error(self, task: TableTask, commit: PreparedCommit) -> Exception | None:
        """As ``_merge_error``."""
        try:
            failpoint("overwrite.before")
            with self.tables.translate_errors(task.target):
                commit.commit()
            failpoint("overwrite.after")
        except Exception as error:
            return error
        return None


def _write_split(
    location: str, connection: ConnectionInfo, table: str, layout: FileLayout, rows: Iterable[pa.Table]
) -> list[Add]:
    """Runs in the process that reads the split."""
    return write_files(open_store(location, connection), table, rows, layout)


def _are_present(location: str, connection: ConnectionInfo, table: str, adds: Iterable[Add]) -> bool:
    store = open_store(location, connection)
    return all(store.exists(f"{table}/{add['path']}") for add in adds)
