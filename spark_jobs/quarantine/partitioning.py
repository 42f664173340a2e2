"""The records of a batch sorted into those that are folded and those that wait. Asked only where something is bad or
not told, or waits already: any other batch takes every record as it is."""

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
from spark_jobs.batches.batch_stats import NOTHING, BatchShape, parked_shape, shape_of
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.small_frames import small_frame, texts
from spark_jobs.folds.keyed import own_key as key_column
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import Bad, CorrectedRecord, Ruling, carried, keep, named, rule
from spark_jobs.quarantine.carry_over import BESIDE, read_carry
from spark_jobs.quarantine.parking import Mark, Parking, PartitionedRecords, part, settled
from spark_jobs.quarantine.refetch import DirtyKeys, FetchedRows
from spark_jobs.quarantine.unrepresentable import unrepresentable_records
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.windows.driver_reads import CarriedRecord, frame

WRITTEN_OF_A_STOP = 100
"""So many bad records of the window that stops a table are written down. The change log holds them all."""


class Stopped(BadRecordFound):
    """The table may not go beyond the window before this one."""

    def __init__(self, window: int, problem: Problem) -> None:
        super().__init__(problem)
        self.window = window


@dataclass(frozen=True)
class PartitionedBatch:
    """``entries`` are for the fold. ``waiting``: the carry-over from now on as ``carry_files`` wants it; None where it
    stays as it is. ``bad``: those that may be in quarantine from now on. ``back``: the shape of what had waited or was
    fetched and may be among the entries, ``admitted`` which these are (``k``, ``order_key``). ``discarded``: so many
    records are lost by decision. ``unanswered``: why the source did not tell rows that it was asked for."""

    entries: DataFrame
    waiting: DataFrame | None = None
    bad: tuple[Bad, ...] = ()
    back: BatchShape = NOTHING
    admitted: DataFrame | None = None
    discarded: int = 0
    unanswered: Retryable | None = None


@dataclass(frozen=True)
class RecordPartitioner:
    """``carry``: of the commit that the batch is built on. ``after``: what is not behind this order key is settled.
    ``shape``: of the records of the windows. ``now``: ISO time. ``target``: the table as the batch will find it, where
    changes that meet no row are looked for."""

    job: Job
    work: TableWork
    plan: BatchPlan
    images: ImageColumns
    carry: CarryOver
    after: str
    shape: BatchShape
    now: str
    target: Callable[[], DataFrame] | None

    def sort(self, records: DataFrame, bad: Sequence[Bad], dirty: Sequence[DirtyKeys]) -> PartitionedBatch | None:
        """``records``: the changes of rows. None where there are none, and no decision has helped. Raises Stopped where
        ``bad`` ones may not be put aside, SourceUnavailable where there is nothing but ``dirty`` ones and the source
        tells nothing."""
        known = self._known(bad)
        ruled = self._ruled(known)
        self.require_allowed([one for one in ruled.open if not one.since])
        helped = bool(self.plan.windows or ruled.mended or ruled.given_up)
        if not (helped or dirty):
            return None
        if self.plan.touched:  # what waits is left alone, and what never waited has been superseded
            ruled = replace(ruled, open=())
        mended = frame(self.work.spark, map(CarriedRecord, ruled.back))
        fresh = _without(records, known)
        fresh = fresh.withColumns({name: F.lit(None).cast("string") for name in BESIDE}).select(*FIELDS, *BESIDE)
        back, shape = mended, shape_of(ruled.back)
        if not self.plan.touched:
            back, shape = self._parked().unionByName(mended), shape + parked_shape(self.job.log, self.carry)
        taken = [] if self.plan.touched else refetch.remembered(self.job.log, self.carry)
        entries = refetch.without_superseded(fresh.unionByName(back), [one.record for one in taken])
        answers = self._answers(entries, dirty)
        if answers.error and not (helped or answers.rows):
            raise answers.error
        entries = self._with_answers(entries, answers)
        parted = part(entries, self._parking(ruled, answers.open, shape))
        unfit = self._unfit_parked(parted)
        if unfit:
            ruled = replace(ruled, open=(*ruled.open, *unfit))
            self.require_allowed([one for one in ruled.open if not one.since])
            entries = _without(entries, unfit)
            parted = part(entries, self._parking(ruled, answers.open, shape))
        return PartitionedBatch(
            parted.applied,
            None if self.plan.touched else parted.waiting.unionByName(self._memories(taken, answers, entries)),
            ruled.open,
            shape + shape_of(answers.rows),
            back.select(key_column().alias("k"), "order_key"),
            len(ruled.given_up) + parted.orphans,
            answers.error,
        )

    def _unfit_parked(self, parted: PartitionedRecords) -> list[Bad]:
        """Records that the target cannot hold, among those that would be parked as good ones. Nothing folds them, so
        they stop no batch: one that lets them go would find them nowhere in its windows."""
        if not parted.parks:
            return []
        parked = parted.waiting.where((F.col("kind") == Carried.PARKED) & (F.col("since") == self.now))
        return named(self.job.log, self.plan.windows, unrepresentable_records(parked, self.images, self.job.tables))

    def _with_answers(self, entries: DataFrame, answers: FetchedRows) -> DataFrame:
        """Each answer in the place of what it tells; no entry that still waits for one."""
        if answers.open:
            entries = _without(entries, answers.open)
        if answers.rows:
            entries = refetch.without_superseded(entries, answers.rows)
            entries = entries.unionByName(frame(self.work.spark, map(CarriedRecord, answers.rows)))
        return entries

    def _memories(self, taken: Iterable[CarriedRecord], answers: FetchedRows, entries: DataFrame) -> DataFrame:
        still = [one for one in taken if int(one.until or 0) > self.plan.window]
        new = [refetch.memory(row, self.now, self.job.log.sealed()) for row in answers.rows]
        return frame(self.work.spark, refetch.with_returns([*still, *new], entries))

    def _answers(self, entries: DataFrame, dirty: Sequence[DirtyKeys]) -> FetchedRows:
        """What the source says of the rows that nobody else can tell."""
        dirty = [one for one in dirty if one.record.order_key > self.after]
        if self.target:
            known = {one.key for one in dirty}
            met = refetch.orphan_updates(entries, self.images, self.target)
            dirty += [one for one in met if one.key not in known]
        if not dirty:
            return FetchedRows()
        marks = {_mark(one.record): one for one in dirty}
        ignore = self.work.task.rule.on_delete is OnDelete.IGNORE
        needless = settled(entries, list(marks), ignore)
        dirty = [one for mark, one in marks.items() if mark not in needless]
        if not dirty:
            return FetchedRows()
        answers = refetch.fetch_rows(self.job, self.work.task, self.plan.schema, dirty)
        return self._fitting(answers, dirty)

    def _fitting(self, answers: FetchedRows, dirty: Sequence[DirtyKeys]) -> FetchedRows:
        """A row that the target cannot hold is no answer."""
        rows = frame(self.work.spark, map(CarriedRecord, answers.rows))
        unfit = unrepresentable_records(rows, self.images, self.job.tables) if answers.rows else {}
        if not unfit:
            return answers
        keys = {own_key(row): why for row in answers.rows if (why := unfit.get(record_key(row)))}
        still = tuple(replace(one, reason=keys[one.key]) for one in dirty if one.key in keys)
        fit = tuple(row for row in answers.rows if record_key(row) not in unfit)
        return FetchedRows(
            fit, (*answers.open, *still), answers.error or SourceUnavailable(refetch.not_representable(still))
        )

    def _parked(self) -> DataFrame:
        waited = read_carry(self.work.spark, self.job.log, self.carry)
        parked = waited.where((F.col("kind") == Carried.PARKED) & (F.col("order_key") > self.after))
        return parked.withColumn("kind", F.lit(None).cast("string"))

    def require_allowed(self, new: Sequence[Bad]) -> None:
        """Raises Stopped at the first window whose bad records may not be put aside, or not all of them."""
        windows = {window.window: window.part.rows for window in self.plan.windows}
        rule_, log, table = self.work.task.rule, self.job.log, self.work.task.table
        for window, count in sorted(Counter(one.window for one in new).items()):
            here = [one for one in new if one.window == window]
            limit = max_bad_records(rule_.quarantine, windows[window])
            keyless = next((one for one in here if own_key(one.record) is None), None)
            if self.plan.touched or (rule_.on_bad_record is OnBadRecord.QUARANTINE and count <= limit and not keyless):
                continue
            first = keyless or here[0]
            keep(log, table, [first, *(one for one in here if one is not first)][:WRITTEN_OF_A_STOP], self.now)
            told = BadRecordProblems(
                self.job.step.definition.name, table, window, first.id, first.reason, log.store.root
            )
            if rule_.on_bad_record is OnBadRecord.STOP:
                raise Stopped(window, told.stop())
            raise Stopped(window, told.without_key() if keyless else told.too_many(count, limit))

    def _known(self, bad: Iterable[Bad]) -> list[Bad]:
        """What is bad in these windows and, but for a repair, what is in quarantine already; each record once."""
        held = [] if self.plan.touched else carried(self.job.log, self.carry)
        once = {one.id: one for one in (*bad, *held)}
        return [one for one in once.values() if one.record.order_key > self.after]

    def _ruled(self, known: Sequence[Bad]) -> Ruling:
        """A mended record that the target cannot hold stays bad."""
        job, task = self.job, self.work.task

        def reread(record: ChangeRecord) -> list[ChangeRecord]:
            return job.source.reread(record, task, job.log.schema(record.schema_id))

        ruled = rule(known, decisions_by_record(job.log.decisions(), task.table), reread, self.plan.schema)
        if not ruled.mended:
            return ruled
        records = frame(self.work.spark, map(CarriedRecord, ruled.back))
        unfit = unrepresentable_records(records, self.images, job.tables)
        still, fit = list[Bad](), list[CorrectedRecord]()
        for one in ruled.mended:
            reasons = [unfit[at] for at in map(record_key, one.records) if at in unfit]
            if reasons:
                still.append(replace(one.bad, reason=reasons[0]))
            else:
                fit.append(one)
        return replace(ruled, open=(*ruled.open, *still), mended=tuple(fit))

    def _parking(self, ruled: Ruling, dirty: Sequence[DirtyKeys], back: BatchShape) -> Parking:
        waits = [*(one.carried for one in ruled.open), *(one.carried for one in dirty)]
        return Parking(
            waits=frame(self.work.spark, waits),
            marks=[_mark(one.record) for one in waits],
            births=[_mark(record) for record in ruled.given_up if is_insert(record)],
            ignore_deletes=self.work.task.rule.on_delete is OnDelete.IGNORE,
            doubly_held=self.plan.schema.regime is Regime.DOUBLE,
            moves=bool(self.shape.moved + back.moved) or any(one.record.phase == ARRIVES for one in waits),
            now=self.now,
        )


def _without(records: DataFrame, some: Iterable[Bad | DirtyKeys]) -> DataFrame:
    left = small_frame(records.sparkSession, {record_key(one.record) for one in some}, texts("left_key", "left_order"))
    same = (F.coalesce(key_column(), F.lit("")) == F.col("left_key")) & (F.col("order_key") == F.col("left_order"))
    return records.join(left, same, "left_anti")


def _mark(record: ChangeRecord) -> Mark:
    return Mark(own_key(record) or "", record.order_key, record.tx_id)
