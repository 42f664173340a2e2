"""A full copy into a table that keeps a history: what differs from its current rows becomes new versions, or changes.

Nothing of the history is removed, and a row that is as it was keeps its version. The rows are staged and merged like a
batch. A crash before the commit leaves the table ``resyncing``, and the next attempt compares again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.decisions.schema_decisions import ANOTHER_HISTORY, continue_history, unfit_for_history
from airflow_cdc_provider.core.decisions.steps import Batch, TableResult
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.former_columns import former_after
from airflow_cdc_provider.core.table.history import OPERATION, VALID_FROM, row_schema, stored_schema
from airflow_cdc_provider.core.table.merge_plan import KNOWN, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.own_rows import bounded_column
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange, compare
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.batches.row_files import write_frame
from spark_jobs.batches.staged_rows import BATCH, ROWS, StagedRows
from spark_jobs.copies.copied_rows import literal
from spark_jobs.copies.copying import commit_copy
from spark_jobs.copies.delete_guard import MissingRows, keeps_missing_rows
from spark_jobs.engines.choice import local_limit, on_engine
from spark_jobs.histories.compared_rows import all_equal, end_rows, prefixed, same_key
from spark_jobs.histories.copied_versions import copied_columns
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.spark_progress import watch_copy
from spark_jobs.windows.parquet_files import count_rows
from spark_jobs.writers.former_columns import require_free_names

OLD, NEW = "_cdc_old", "_cdc_new"


@dataclass(frozen=True)
class HistoryCopy:
    """``before``: the control record of the table. ``record``: that of the copy. ``began``: before the anchor."""

    job: Job
    work: TableWork
    copy: Copy
    before: ControlRecord
    record: ControlRecord
    began: datetime

    @property
    def history(self) -> History:
        return self.work.task.rule.history

    @property
    def schema(self) -> TableSchema:
        return self.copy.schema

    @property
    def sequence(self) -> str:
        """Above the order keys of all changes that the copy contains, and below those of all later ones. The fence
        makes it unique: the source may not have moved since the last copy."""
        return f"{self.copy.floor}!{self.record.fence:010d}"

    @property
    def at(self) -> datetime:
        """The time of the copy, unless a version has ended later: the clocks are not the same."""
        ended = datetime.fromisoformat(self.before.versions_until) if self.before.versions_until else self.began
        return max(self.began, ended)

    @property
    def is_late(self) -> bool:
        """The table has applied later changes than the copy. A feed's new snapshot begins before all of its changes."""
        return self.copy.floor < self.before.floor or self.sequence < self.before.applied.newest

    def added_columns(self) -> tuple[Column, ...]:
        """Raises Blocked where the table cannot have old and new versions side by side."""
        assert self.before.schema is not None
        changes = compare(row_schema(self.before.schema), self.schema)
        if unfit := unfit_for_history(changes):
            raise self._incompatible(unfit)
        return tuple(change.after for change in changes if change.kind is ChangeKind.ADD_COLUMN and change.after)

    def differences(self, current: DataFrame, new: DataFrame) -> DataFrame:
        """Current rows of the table (``prefixed``) beside rows of the source with their key, where they differ.
        ``OLD`` and ``NEW``: whether a row is on that side. Raises Blocked as ``added_columns``, and where the copy
        is not later than what the table has applied: its ends and changes would be those of earlier rows."""
        if self.is_late:
            raise self._too_early()
        require_free_names(self.job, self.work, self.added_columns())
        old = prefixed(self.schema, current).withColumn(OLD, F.lit(True))
        joined = new.withColumn(NEW, F.lit(True)).join(old, same_key(self.schema), "full_outer")
        both = joined.withColumns({name: F.coalesce(name, F.lit(False)) for name in (OLD, NEW)})
        return both.where(~(F.col(OLD) & F.col(NEW) & all_equal(self.schema, self.work.task.rule.columns.of_changes)))

    def missing(self, differences: DataFrame, current: DataFrame) -> MissingRows:
        return MissingRows(differences.where(f"NOT {NEW}").count(), current.count())

    def commit(self, differences: DataFrame, missing: MissingRows) -> TableResult:
        """Stage and merge. Raises Fenced where another attempt has taken over the table."""
        batch = self._stage(differences)

        def merge(record: ControlRecord) -> int:
            rows = StagedRows(self.work.session, self.job.log.store, batch)
            task = replace(self.work.task, schema=batch.schema)
            limit = local_limit(self.job.tables)
            on_engine(self.job, self.work, batch.rows, lambda engine: engine.merge(task, rows, record), limit)
            return batch.rows

        progress, record = watch_copy(self.work.spark, self.copy), self._with_former_columns()
        return commit_copy(self.job, self.work, progress, merge, record, missing=missing.rows, of=missing.of)

    def _with_former_columns(self) -> ControlRecord:
        """The table keeps the columns of its older versions, and their times."""
        before, after = self.before.schema, self.record.schema
        assert before is not None and after is not None
        former = former_after(self.before.former, before, after)
        return replace(
            self.record,
            former=former,
            versions_until=self._versions_until,
        )

    @property
    def _versions_until(self) -> str:
        return self.at.isoformat() if self.before.versions_until else ""

    def _stage(self, differences: DataFrame) -> Batch:
        log = self.job.log
        folder = batch_folder(self.work.task.table, f"{self.job.step.attempt}-copy")
        rows = self._new_rows(differences).unionByName(self._ended_rows(differences))
        write_frame(rows, log.store.url(f"{folder}/{ROWS}"))
        number = count_rows(log.store, f"{folder}/{ROWS}")
        schema = stored_schema(self.history, self.schema)
        batch = Batch(
            table=self.work.task.table,
            folder=folder,
            fence=self.before.fence,
            lo_window=self.before.window,
            window=self.record.window,
            schema=schema,
            rows=number,
            counts={Operation.READ.value: number},
            partial=True,
            bounds=key_bounds(log.store, f"{folder}/{ROWS}", bounded_column(schema)) if number else (),
            added=self.added_columns(),
        )
        log.store.write(f"{folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
        return batch

    def _new_rows(self, differences: DataFrame) -> DataFrame:
        return self._as_staged(differences.where(NEW), (F.col(quoted(name)) for name in self.schema.names))

    def _ended_rows(self, differences: DataFrame) -> DataFrame:
        gone = differences.where(OLD)
        if keeps_missing_rows(self.job, self.work.task):
            gone = gone.where(NEW)
        if self.history is History.SCD2:
            return end_rows(self.schema, gone, self._not_before_old(), F.lit(self.sequence))
        deleted = self._as_staged(
            gone.where(f"NOT {NEW}"), (F.col(f"_cdc_o{number}") for number in range(len(self.schema.columns)))
        )
        return deleted.withColumn(OPERATION, F.lit(Operation.DELETE.value))

    def _as_staged(self, rows: DataFrame, values: Iterable[SparkColumn]) -> DataFrame:
        named = (value.alias(name) for value, name in zip(values, self.schema.names, strict=True))
        constants = {
            name: literal(value) for name, value in copied_columns(self.history, self.sequence, self.at).items()
        }
        if self.history is History.SCD2:
            constants[VALID_FROM] = self._not_before_old()
        return rows.select(
            *named,
            *(value.alias(name) for name, value in constants.items()),
            F.lit(self.sequence).alias(ORDER),
            F.lit(LIVE).alias(OP),
            F.lit(None).cast("array<string>").alias(KNOWN),
        )

    def _not_before_old(self) -> SparkColumn:
        """The time of the copy, unless the version that it ends begins later."""
        return F.greatest(F.lit(self.at), F.col("_cdc_o_from"))

    def _too_early(self) -> Blocked:
        task = self.work.task
        return Blocked.of(
            "CPY026",
            f"{task.table} cannot continue its history over a new snapshot in its feed, which does not tell when the "
            "rows that it lacks were deleted",
            where=self.job.tables.locate(task.target),
            found=f"a copy at {self.copy.floor}, and changes up to {self.before.applied.newest or self.before.floor}",
            allowed="a copy that is later than all changes that are applied",
            do=ANOTHER_HISTORY,
            data="the history is unchanged",
        )

    def _incompatible(self, changes: Sequence[SchemaChange]) -> Blocked:
        task = self.work.task
        resync = f"airflow cdc resync {self.before.replicator} --table {in_shell(task.table)}"
        return Blocked.of(
            "CPY013",
            f"{task.table} cannot continue its history, because its older versions do not fit the table any more",
            where=self.job.tables.locate(task.target),
            found="; ".join(map(str, changes)),
            allowed="added and dropped columns, and changes that the target can execute in place",
            do=f"undo the change if `columns` or `key` in the YAML made it; else {continue_history(changes, resync)}",
            data="the history is unchanged",
        )
