"""Late changes of a feed: those that it delivers again, or after later changes of the same table, from a file that was
written again, a restarted connector or another partition. They leave the windows of a batch where the change log shows
that the copy has applied them, or later changes of their rows. What it does not show stops the table: without it, a
deleted row could come back, or a value be lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.core.decisions.operator_decisions import answer_to
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.truncates import is_ignored, question_about_truncate
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import row_schema
from airflow_cdc_provider.core.table.schema import Regime
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.truncates import truncates_in
from spark_jobs.folds.later_changes import COLUMNS, Fates, LaterChanges, Mask, late_keys
from spark_jobs.windows.log_reader import WindowSlice, verify_files, windows_between
from spark_jobs.windows.parquet_files import column_statistics, open_parquet
from spark_jobs.windows.record_files import SCHEMA, RecordFile

AFTER_ALL = "g"
"""Above all order keys."""
REMAINING = "remaining"
"""The folder, in that of the batch, of the records that remain. An attempt may plan its batch several times."""


@dataclass(frozen=True)
class LateChanges:
    """``folder``: of the batch."""

    log: ChangeLog
    task: TableTask
    control: ControlRecord
    folder: str

    def removed_from(self, windows: Sequence[WindowSlice], repair: bool = False) -> list[WindowSlice]:
        """The windows without late changes that are applied already or superseded; they keep their numbers. ``repair``:
        the copy has applied these windows, so what matters is before them. Raises IntegrityBroken (TGT043),
        StagingInvalid."""
        if not windows or not self.recognises:
            return list(windows)
        verify_files(self.log, windows)
        applied = self.control.applied
        newest, forgotten = (AFTER_ALL, "") if repair else (applied.newest, applied.forgotten(self.log.oldest()))
        first = min(self._first_order_keys(windows), default=AFTER_ALL)
        if first > newest:
            return list(windows)
        found = [late_keys(piece, newest) for window in windows for piece in self._read(window, COLUMNS)]
        later = self._later_changes(windows[0].window, first, pc.unique(pa.chunked_array(found, pa.string())))
        return [self._without(window, partial(later.fates, newest=newest, forgotten=forgotten)) for window in windows]

    def refuse_truncates(self, windows: Sequence[WindowSlice]) -> None:
        """Raises IntegrityBroken (TGT043) at a late TRUNCATE of a table with versions. These are not ended in
        retrospect: a version does not show later changes that left its values as they were. ``windows``: those whose
        TRUNCATEs are to be applied, without repeated ones."""
        if self.task.rule.history is not History.SCD2 or self.task.rule.ignores_truncates or not self.recognises:
            return
        for window in windows:
            for truncate in truncates_in(self.log, [window], self.control.floor):
                if truncate.order_key <= self.control.applied.newest:
                    found = f"truncate with the order key {truncate.order_key}"
                    allowed = "a TRUNCATE that is read before the changes that come after it"
                    raise unknown_meaning(self.task, self.control, window.window, found, allowed)

    @property
    def recognises(self) -> bool:
        """An unordered source has tombstones in the carry-over."""
        schema = row_schema(self.control.schema) if self.control.schema else None
        keyed = schema is not None and bool(schema.key) and schema.regime is not Regime.UNORDERED
        return keyed and self.control.applied.orders_all

    @property
    def schemas_after(self) -> str:
        """The schemas of changes up to this order key are not newer than that of the copy."""
        return max(self.control.floor, self.control.applied.newest if self.recognises else "")

    def in_any(self, windows: Sequence[WindowSlice]) -> bool:
        """Whether some changes of the windows may be late."""
        return min(self._first_order_keys(windows), default=AFTER_ALL) <= self.schemas_after

    def _first_order_keys(self, windows: Sequence[WindowSlice]) -> Iterator[str]:
        paths = (file.path for window in windows for file in window.part.files)
        for statistics in column_statistics(self.log.store, paths, SCHEMA.get_field_index("order_key")):
            yield statistics.min if statistics is not None and statistics.has_min_max else ""

    def _later_changes(self, before: int, first: str, keys: pa.Array) -> LaterChanges:
        """Those that the copy has applied from windows ``before``, from the order key ``first`` on."""
        later, rule = LaterChanges(), self.task.rule
        records = [one.record for one in self.log.bad_records(self.task.table)]
        bad = {(key, one.order_key) for one in records for key in (one.key, one.key_before) if key}
        start = max(self.control.applied.before(first), self.log.oldest() - 1)
        for window in windows_between(self.log, self.task.source_table, start, before - 1):
            ignores_truncates = rule.ignores_truncates or self._is_ignored(window)
            for records in self._read(window, COLUMNS):
                late = records.filter(pc.greater_equal(records["order_key"], first))
                later.add(late, keys, bad, rule.ignores_deletes, ignores_truncates)
        return later

    def _is_ignored(self, window: WindowSlice) -> bool:
        """Whether an operator has decided to ignore its truncates."""
        if Operation.TRUNCATE not in window.part.counts:
            return False
        return is_ignored(answer_to(self.log.decisions(), question_about_truncate(self.control, window.window)))

    def _read(self, window: WindowSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
        for file in window.part.files:
            with open_parquet(self.log.store, file.path) as parquet:
                yield from (pa.table(piece).select(columns) for piece in parquet.iter_batches(columns=columns))

    def _without(self, window: WindowSlice, fates: Callable[[pa.Table], Fates]) -> WindowSlice:
        """The window with a file of the records that remain; as it is if all remain."""
        if not any(self._leaving(window, records, fates(records)).any() for records in self._read(window, COLUMNS)):
            return window
        kept = RecordFile(self.log.store, f"{self.folder}/{REMAINING}/{uuid.uuid4().hex}.parquet")
        try:
            for records in self._read(window, SCHEMA.names):
                leave = self._leaving(window, records, fates(records))
                if not leave.all():
                    remaining = records.filter(pa.array(~leave)).cast(SCHEMA).combine_chunks()
                    kept.write([Block(self.task.source_table, batch) for batch in remaining.to_batches()])
        except BaseException:
            kept.discard()
            raise
        written = kept.close()
        part = replace(
            window.part,
            files=(written.file,) if written.file.rows else (),
            counts=written.counts,
            schema_ids=tuple(one for one in window.part.schema_ids if one in written.schema_ids),
        )
        return WindowSlice(window.window, part)

    def _leaving(self, window: WindowSlice, records: pa.Table, fates: Fates) -> Mask:
        """A log of changes keeps superseded ones; versions of a row are not made in retrospect."""
        history = self.task.rule.history
        unknown = fates.unknown | fates.superseded if history is History.SCD2 else fates.unknown
        if unknown.any():
            raise self._unknown(window, records.filter(pa.array(unknown)))
        return fates.repeated if history is History.LOG else fates.repeated | fates.superseded

    def _unknown(self, window: WindowSlice, records: pa.Table) -> IntegrityBroken:
        record = records.slice(0, 1).to_pylist()[0]
        found = f"{record['op']} with the order key {record['order_key']}"
        allowed = "late changes whose rows have later changes, with all columns, in the change log"
        return unknown_meaning(self.task, self.control, window.window, found, allowed)


def unknown_meaning(task: TableTask, control: ControlRecord, window: int, found: str, allowed: str) -> IntegrityBroken:
    return IntegrityBroken.of(
        "TGT043",
        "a change came later than newer ones of its table, and what it means for its row is not known",
        f"{task.table}, window {window}",
        found,
        allowed,
        f"airflow cdc resync {control.replicator} --table {in_shell(task.table)}; do not write or touch files again "
        "that have been read",
        "nothing of the batch was applied; the change log keeps it",
    )
