"""Separates the records of a batch into those that are folded and those that wait. Used only where a record is bad or
has no values, or where records wait already; in any other batch all records are folded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.operator_decisions import decisions_by_record
from airflow_cdc_provider.core.errors import BadRecordFound, Problem, Retryable, SourceUnavailable
from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_records import ARRIVES, FIELDS, ChangeRecord
from airflow_cdc_provider.core.log.quarantine import BadRecordProblems, is_insert, max_bad_records, own_key, record_key
from airflow_cdc_provider.core.spec.definition import OnBadRecord, OnDelete
from airflow_cdc_provider.core.table.schema import Regime
from spark_jobs.batches.batch_plan import BatchPlan
from spark_jobs.batches.batch_stats import EMPTY_SHAPE, BatchShape, parked_shape, shape_of
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.small_frames import small_frame, text_schema
from spark_jobs.folds.record_columns import own_key as key_column
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import (
    BadRecord,
    CorrectedRecord,
    Resolution,
    apply_decisions,
    quarantined_records,
    read_bad_records,
    write_bad_records,
)
from spark_jobs.quarantine.carry_over import CARRY_COLUMNS, read_carry
from spark_jobs.quarantine.parking import Mark, Parking, PartitionedRecords, partition_records, settled_marks
from spark_jobs.quarantine.refetch import DirtyKey, FetchedRows
from spark_jobs.quarantine.unrepresentable import unrepresentable_records
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.windows.driver_reads import CarriedRecord, carried_frame

MAX_WRITTEN_ON_STOP = 100
"""How many bad records of the window that stops a table are written to the quarantine. The change log has them all."""


class Stopped(BadRecordFound):
    """The table must not go beyond the previous window."""

    def __init__(self, window: int, problem: Problem) -> None:
        super().__init__(problem)
        self.window = window


@dataclass(frozen=True)
class PartitionedBatch:
    """``entries`` are for the fold. ``waiting``: the new carry-over as ``write_carry`` expects it; None where it does
    not change. ``bad``: those that may be in quarantine after the batch. ``returning``: the shape of records that had
    waited or were fetched and may be among the entries; ``admitted``: these entries (``k``, ``order_key``).
    ``discarded``: how many records are dropped by decision. ``fetch_error``: why the source did not return requested
    rows."""

    entries: DataFrame
    waiting: DataFrame | None = None
    bad: tuple[BadRecord, ...] = ()
    returning: BatchShape = EMPTY_SHAPE
    admitted: DataFrame | None = None
    discarded: int = 0
    fetch_error: Retryable | None = None


@dataclass(frozen=True)
class RecordPartitioner:
    """``carry``: of the commit that the batch is based on. ``after``: records at or below this order key are applied.
    ``shape``: of the records of the windows. ``now``: ISO time. ``target``: the table that the batch is based on,
    searched for updates without a row; None where it need not be searched."""

    job: Job
    work: TableWork
    plan: BatchPlan
    images: ImageColumns
    carry: CarryOver
    after: str
    shape: BatchShape
    now: str
    target: Callable[[], DataFrame] | None

    def partition(
        self, records: DataFrame, bad: Sequence[BadRecord], dirty: Sequence[DirtyKey]
    ) -> PartitionedBatch | None:
        """``records``: row changes. None where there are none, and no decision helped. Raises Stopped where ``bad``
        ones must not be quarantined, SourceUnavailable where there are only ``dirty`` ones and the source returns no
        row."""
        known = self._known(bad)
        resolution = self._resolved(known)
        self.require_allowed([entry for entry in resolution.open if not entry.since])
        has_work = bool(self.plan.windows or resolution.corrected or resolution.discarded)
        if not (has_work or dirty):
            return None
        if self.plan.touched:  # a repair leaves waiting records alone; bad records that never waited are superseded
            resolution = replace(resolution, open=())
        corrected = carried_frame(self.work.spark, map(CarriedRecord, resolution.corrected_records))
        empty = {name: F.lit(None).cast("string") for name in CARRY_COLUMNS}
        new = _without(records, known).withColumns(empty).select(*FIELDS, *CARRY_COLUMNS)
        returning, shape = corrected, shape_of(resolution.corrected_records)
        if not self.plan.touched:
            returning, shape = self._parked().unionByName(corrected), shape + parked_shape(self.job.log, self.carry)
        earlier = [] if self.plan.touched else refetch.earlier_fetches(self.job.log, self.carry)
        entries = refetch.without_superseded(new.unionByName(returning), [row.record for row in earlier])
        fetch = self._fetch(entries, dirty)
        if fetch.error and not (has_work or fetch.rows):
            raise fetch.error
        entries = self._with_fetched(entries, fetch)
        partitioned = partition_records(entries, self._parking(resolution, fetch.open, shape))
        unfit = self._unfit_parked(partitioned)
        if unfit:
            resolution = replace(resolution, open=(*resolution.open, *unfit))
            self.require_allowed([entry for entry in resolution.open if not entry.since])
            entries = _without(entries, unfit)
            partitioned = partition_records(entries, self._parking(resolution, fetch.open, shape))
        waiting = None
        if not self.plan.touched:
            waiting = partitioned.waiting.unionByName(self._fetch_records(earlier, fetch, entries))
        return PartitionedBatch(
            partitioned.applied,
            waiting,
            resolution.open,
            shape + shape_of(fetch.rows),
            returning.select(key_column().alias("k"), "order_key"),
            len(resolution.discarded) + partitioned.orphans,
            fetch.error,
        )

    def _unfit_parked(self, partitioned: PartitionedRecords) -> list[BadRecord]:
        """Records that the target cannot represent, among those that would be parked as good ones. They are not folded,
        so they fail no batch; a later batch that releases them would not find them in its windows."""
        if not partitioned.parks:
            return []
        parked = partitioned.waiting.where((F.col("kind") == Carried.PARKED) & (F.col("since") == self.now))
        reasons = unrepresentable_records(parked, self.images, self.job.tables)
        return read_bad_records(self.job.log, self.plan.windows, reasons)

    def _with_fetched(self, entries: DataFrame, fetch: FetchedRows) -> DataFrame:
        """Each fetched row replaces the changes that it supersedes; entries that still wait for a row are dropped."""
        if fetch.open:
            entries = _without(entries, fetch.open)
        if fetch.rows:
            entries = refetch.without_superseded(entries, fetch.rows)
            entries = entries.unionByName(carried_frame(self.work.spark, map(CarriedRecord, fetch.rows)))
        return entries

    def _fetch_records(self, earlier: Iterable[CarriedRecord], fetch: FetchedRows, entries: DataFrame) -> DataFrame:
        still = [row for row in earlier if int(row.until or 0) > self.plan.window]
        new = [refetch.fetch_record(row, self.now, self.job.log.sealed()) for row in fetch.rows]
        return carried_frame(self.work.spark, refetch.with_returned_rows([*still, *new], entries))

    def _fetch(self, entries: DataFrame, dirty: Sequence[DirtyKey]) -> FetchedRows:
        """Fetch the rows that no record has."""
        dirty = [dirty_key for dirty_key in dirty if dirty_key.record.order_key > self.after]
        if self.target:
            known = {dirty_key.key for dirty_key in dirty}
            orphans = refetch.orphan_updates(entries, self.images, self.target)
            dirty += [orphan for orphan in orphans if orphan.key not in known]
        if not dirty:
            return FetchedRows()
        marks = {_mark(dirty_key.record): dirty_key for dirty_key in dirty}
        ignore = self.work.task.rule.on_delete is OnDelete.IGNORE
        needless = settled_marks(entries, list(marks), ignore)
        dirty = [dirty_key for mark, dirty_key in marks.items() if mark not in needless]
        if not dirty:
            return FetchedRows()
        fetch = refetch.fetch_rows(self.job, self.work.task, self.plan.schema, dirty)
        return self._representable(fetch, dirty)

    def _representable(self, fetch: FetchedRows, dirty: Sequence[DirtyKey]) -> FetchedRows:
        """A row that the target cannot represent counts as not fetched."""
        rows = carried_frame(self.work.spark, map(CarriedRecord, fetch.rows))
        unfit = unrepresentable_records(rows, self.images, self.job.tables) if fetch.rows else {}
        if not unfit:
            return fetch
        keys = {own_key(row): reason for row in fetch.rows if (reason := unfit.get(record_key(row)))}
        still_open = tuple(replace(waiting, reason=keys[waiting.key]) for waiting in dirty if waiting.key in keys)
        fit = tuple(row for row in fetch.rows if record_key(row) not in unfit)
        return FetchedRows(
            fit, (*fetch.open, *still_open), fetch.error or SourceUnavailable(refetch.not_representable(still_open))
        )

    def _parked(self) -> DataFrame:
        carried = read_carry(self.work.spark, self.job.log, self.carry)
        parked = carried.where((F.col("kind") == Carried.PARKED) & (F.col("order_key") > self.after))
        return parked.withColumn("kind", F.lit(None).cast("string"))

    def require_allowed(self, new: Sequence[BadRecord]) -> None:
        """Raises Stopped at the first window with bad records that must not be quarantined, or with too many of
        them."""
        windows = {window.window: window.part.rows for window in self.plan.windows}
        rule, log, table = self.work.task.rule, self.job.log, self.work.task.table
        for window, count in sorted(Counter(entry.window for entry in new).items()):
            in_window = [entry for entry in new if entry.window == window]
            limit = max_bad_records(rule.quarantine, windows[window])
            keyless = next((entry for entry in in_window if own_key(entry.record) is None), None)
            if self.plan.touched or (rule.on_bad_record is OnBadRecord.QUARANTINE and count <= limit and not keyless):
                continue
            first = keyless or in_window[0]
            others = [entry for entry in in_window if entry is not first]
            write_bad_records(log, table, [first, *others][:MAX_WRITTEN_ON_STOP], self.now)
            refusal = BadRecordProblems(
                self.job.step.definition.name, table, window, first.id, first.reason, log.store.root
            )
            if rule.on_bad_record is OnBadRecord.STOP:
                raise Stopped(window, refusal.stop())
            raise Stopped(window, refusal.without_key() if keyless else refusal.too_many(count, limit))

    def _known(self, bad: Iterable[BadRecord]) -> list[BadRecord]:
        """The bad records of these windows and, except in a repair, those in quarantine already; each record once."""
        quarantined = [] if self.plan.touched else quarantined_records(self.job.log, self.carry)
        by_id = {entry.id: entry for entry in (*bad, *quarantined)}
        return [entry for entry in by_id.values() if entry.record.order_key > self.after]

    def _resolved(self, known: Sequence[BadRecord]) -> Resolution:
        """A corrected record that the target cannot represent stays bad."""
        job, task = self.job, self.work.task

        def reread(record: ChangeRecord) -> list[ChangeRecord]:
            return job.source.reread(record, task, job.log.schema(record.schema_id))

        resolution = apply_decisions(
            known, decisions_by_record(job.log.decisions(), task.table), reread, self.plan.schema
        )
        if not resolution.corrected:
            return resolution
        records = carried_frame(self.work.spark, map(CarriedRecord, resolution.corrected_records))
        unfit = unrepresentable_records(records, self.images, job.tables)
        still_bad, fit = list[BadRecord](), list[CorrectedRecord]()
        for entry in resolution.corrected:
            reasons = [unfit[key] for key in map(record_key, entry.records) if key in unfit]
            if reasons:
                still_bad.append(replace(entry.bad, reason=reasons[0]))
            else:
                fit.append(entry)
        return replace(resolution, open=(*resolution.open, *still_bad), corrected=tuple(fit))

    def _parking(self, resolution: Resolution, dirty: Sequence[DirtyKey], returning: BatchShape) -> Parking:
        waits = [*(entry.as_carried for entry in resolution.open), *(entry.as_carried for entry in dirty)]
        return Parking(
            waits=carried_frame(self.work.spark, waits),
            marks=[_mark(row.record) for row in waits],
            discarded_inserts=[_mark(record) for record in resolution.discarded if is_insert(record)],
            ignore_deletes=self.work.task.rule.on_delete is OnDelete.IGNORE,
            doubly_held=self.plan.schema.regime is Regime.DOUBLE,
            moves=bool(self.shape.moved + returning.moved) or any(row.record.phase == ARRIVES for row in waits),
            now=self.now,
        )


def _without(records: DataFrame, omitted: Iterable[BadRecord | DirtyKey]) -> DataFrame:
    drop_rows = small_frame(
        records.sparkSession, {record_key(entry.record) for entry in omitted}, text_schema("drop_key", "drop_order")
    )
    same = (F.coalesce(key_column(), F.lit("")) == F.col("drop_key")) & (F.col("order_key") == F.col("drop_order"))
    return records.join(drop_rows, same, "left_anti")


def _mark(record: ChangeRecord) -> Mark:
    return Mark(own_key(record) or "", record.order_key, record.tx_id)
