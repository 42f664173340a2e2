"""Separates the records of a batch into those that are folded and those that wait. Used only where a record is bad or
has no values, or where records wait already; in any other batch all records are folded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from airflow_cdc_provider.connectors.copied import reading
from airflow_cdc_provider.core.decisions.operator_decisions import decisions_by_record
from airflow_cdc_provider.core.errors import BadRecordFound, Problem, Retryable, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ARRIVES, ChangeRecord
from airflow_cdc_provider.core.log.quarantine import BadRecordProblems, is_insert, max_bad_records, own_key, record_key
from airflow_cdc_provider.core.spec.definition import OnBadRecord
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import Regime
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.batch_stats import EMPTY_SHAPE, BatchShape, parked_shape, shape_of
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
from spark_jobs.quarantine.dropped_columns import as_it_came, with_columns_of
from spark_jobs.quarantine.entries import Entries, Mark
from spark_jobs.quarantine.parking import Parking, PartitionedRecords, partition_records, settled_marks
from spark_jobs.quarantine.present_columns import PresentColumns
from spark_jobs.quarantine.refetch import DirtyKey, FetchedRows
from spark_jobs.windows.driver_reads import CarriedRecord

E = TypeVar("E", bound=Entries)

MAX_WRITTEN_ON_STOP = 100
"""How many bad records of the window that stops a table are written to the quarantine. The change log has them all."""


class Stopped(BadRecordFound):
    """The table must not go beyond the previous window."""

    def __init__(self, window: int, problem: Problem) -> None:
        super().__init__(problem)
        self.window = window


@dataclass(frozen=True)
class PartitionedBatch(Generic[E]):
    """``entries`` are for the fold. ``waiting``: the new carry-over; None where it does not change. ``bad``: those that
    may be in quarantine after the batch. ``returning``: records that had waited and may be among the entries.
    ``shape``: of these and of fetched rows. ``discarded``: how many records are dropped by decision. ``fetch_error``:
    why the source did not return requested rows."""

    entries: E
    waiting: E | None = None
    bad: tuple[BadRecord, ...] = ()
    returning: E | None = None
    shape: BatchShape = EMPTY_SHAPE
    discarded: int = 0
    fetch_error: Retryable | None = None


@dataclass(frozen=True)
class RecordPartitioner(Generic[E]):
    """``orphans``: finds partial updates without a row; None where they need not be searched."""

    batch: BatchInput
    orphans: Callable[[E], list[DirtyKey]] | None = None

    def partition(self, records: E, parked: E, bad: Sequence[BadRecord]) -> PartitionedBatch[E] | None:
        """``records``: row changes of the windows; ``parked``: those that have waited. None where there are none, and
        no decision helped. Raises Stopped where ``bad`` ones must not be quarantined, SourceUnavailable where there are
        only dirty keys and the source returns no row."""
        repair, log, carry = bool(self.batch.plan.touched), self.batch.job.log, self.batch.control.carry
        dirty = [] if repair else self.batch.dirty
        known = self._known(bad)
        resolution = self._resolved(known, records)
        self.require_allowed([entry for entry in resolution.open if not entry.since])
        has_work = bool(self.batch.plan.windows or resolution.corrected or resolution.discarded)
        if not (has_work or dirty):
            return None
        if repair:  # waiting records are left alone; bad records that never waited are superseded
            resolution = replace(resolution, open=())
        returning, shape = self._of(records, resolution.corrected_records), shape_of(resolution.corrected_records)
        if not repair:
            returning, shape = parked.union(returning), shape + parked_shape(log, carry)
        earlier = [] if repair else refetch.earlier_fetches(log, carry)
        entries = records.without(record_key(entry.record) for entry in known).union(returning)
        entries = self._without_superseded(entries, [row.record for row in earlier])
        fetch = self._fetch(entries, dirty)
        if fetch.error and not (has_work or fetch.rows or fetch.last_known):
            raise fetch.error
        returning, shape = returning.union(self._of(entries, fetch.kept)), shape + shape_of(fetch.kept)
        entries = self._with_fetched(entries, fetch)
        partitioned = self._partitioned(entries, resolution, fetch.open, shape)
        unfit = self._unfit_parked(partitioned)
        if unfit:
            resolution = replace(resolution, open=(*resolution.open, *unfit))
            self.require_allowed([entry for entry in resolution.open if not entry.since])
            entries = entries.without(record_key(entry.record) for entry in unfit)
            partitioned = self._partitioned(entries, resolution, fetch.open, shape)
        waiting = None
        if not repair:
            waiting = partitioned.split.waiting.union(entries.of(self._fetch_records(earlier, fetch, entries)))
        return PartitionedBatch(
            partitioned.split.applied,
            waiting,
            resolution.open,
            returning,
            shape + shape_of(fetch.rows),
            len(resolution.discarded) + partitioned.orphans,
            fetch.error,
        )

    def _partitioned(
        self, entries: E, resolution: Resolution, dirty: Sequence[DirtyKey], returning: BatchShape
    ) -> PartitionedRecords[E]:
        waits = [*(entry.as_carried for entry in resolution.open), *(entry.as_carried for entry in dirty)]
        moved = self.batch.stats.shape.moved + returning.moved
        parking = Parking(
            marks=[_mark(row.record) for row in waits],
            until_decided=[_mark(entry.record) for entry in resolution.open if self._keeps_changes],
            discarded_inserts=[_mark(record) for record in resolution.discarded if is_insert(record)],
            ignore_deletes=self._ignores_deletes,
            doubly_held=self.batch.plan.schema.regime is Regime.DOUBLE,
            moves=bool(moved) or any(row.record.phase == ARRIVES for row in waits),
            now=self.batch.now,
        )
        return partition_records(entries.union(entries.of(waits)), parking)

    def _unfit_parked(self, partitioned: PartitionedRecords[E]) -> list[BadRecord]:
        """Records that the target cannot represent, among those that would be parked as good ones. They are not folded,
        so they fail no batch; a later batch that releases them would not find them in its windows."""
        if not partitioned.parks:
            return []
        parked = partitioned.split.waiting.newly_parked(self.batch.now)
        reasons = parked.unrepresentable(self.batch.images, self.batch.job.tables)
        return read_bad_records(self.batch.job.log, self.batch.plan.windows, reasons)

    def _with_fetched(self, entries: E, fetch: FetchedRows) -> E:
        """Each fetched row replaces the changes that it supersedes; entries that still wait for a row are dropped."""
        if fetch.last_known:
            entries = self._with_values(entries, fetch.last_known, fetch.kept)
        if fetch.open:
            entries = entries.without(record_key(one.record) for one in fetch.open)
        if fetch.rows:
            entries = self._without_superseded(entries, fetch.rows, fetch.orphans)
            entries = entries.union(self._of(entries, fetch.rows))
        return entries

    def _without_superseded(self, entries: E, fetched: Sequence[ChangeRecord], orphans: Set[str] = frozenset()) -> E:
        """A history has every change that the source sent. Like a full copy, a fetched row may contain later changes,
        which are applied again. A row that the table lacks (``orphans``) replaces the changes that came without it."""
        if not self._keeps_changes:
            return entries.without_superseded(fetched)
        of_orphans = [row for row in fetched if own_key(row) in orphans]
        others = [row for row in fetched if own_key(row) not in orphans]
        return entries.without_superseded(of_orphans).without_fetched(others)

    def _of(self, entries: E, records: Iterable[ChangeRecord]) -> E:
        return entries.of(map(CarriedRecord, records))

    def _fetch_records(self, earlier: Iterable[CarriedRecord], fetch: FetchedRows, entries: E) -> list[CarriedRecord]:
        windows, table, last = self.batch.job.whole_windows, self.batch.task.source_table, self.batch.plan.window
        still = refetch.not_replayed(list(earlier), windows, table, last)
        new = [refetch.fetch_record(row, self.batch.now, self.batch.job.log.sealed()) for row in fetch.rows]
        return refetch.with_returned_rows([*still, *new], entries)

    def _fetch(self, entries: E, dirty: Sequence[DirtyKey]) -> FetchedRows:
        """Fetch the rows that no record has. A delete needs none, also where it is ignored."""
        dirty = [dirty_key for dirty_key in dirty if dirty_key.record.order_key > self.batch.after]
        orphans = self._orphans(entries, dirty)
        known = {dirty_key.key for dirty_key in dirty}
        dirty += [orphan for orphan in orphans if orphan.key not in known]
        if not dirty:
            return FetchedRows()
        marks = {_mark(dirty_key.record): dirty_key for dirty_key in dirty}
        needless = settled_marks(entries, list(marks), ignore_deletes=False)
        dirty = [dirty_key for mark, dirty_key in marks.items() if mark not in needless]
        fetch = FetchedRows()
        if dirty:
            fetch = refetch.fetch_rows(self.batch.job, self.batch.task, self.batch.plan.schema, dirty)
            fetch = self._representable(fetch, dirty, entries)
        fetch = replace(fetch, orphans=frozenset(orphan.key for orphan in orphans))
        if not self._ignores_deletes:
            return fetch
        replaced = settled_marks(entries, list(needless), ignore_deletes=True)
        gone = [marks[mark] for mark in needless - replaced]
        return fetch.without_deletes(dirty, gone, {orphan.key for orphan in orphans})

    def _orphans(self, entries: E, dirty: Sequence[DirtyKey]) -> list[DirtyKey]:
        if self.orphans is None:
            return []
        if self._ignores_deletes:
            records = [dirty_key.record for dirty_key in dirty]
            entries = self._with_values(entries, records, FetchedRows(last_known=tuple(records)).kept)
        return self.orphans(entries)

    def _with_values(self, entries: E, incomplete: Sequence[ChangeRecord], kept: Sequence[ChangeRecord]) -> E:
        """With the ``kept`` ones of the incomplete changes, which are among the entries or had waited."""
        return entries.without(map(record_key, incomplete)).union(self._of(entries, kept))

    def _representable(self, fetch: FetchedRows, dirty: Sequence[DirtyKey], entries: E) -> FetchedRows:
        """A row that the target cannot represent counts as not fetched."""
        if not fetch.rows:
            return fetch
        rows = self._of(entries, fetch.rows)
        unfit = rows.unrepresentable(self.batch.images, self.batch.job.tables)
        if not unfit:
            return fetch
        keys = {own_key(row): reason for row in fetch.rows if (reason := unfit.get(record_key(row)))}
        still_open = tuple(replace(waiting, reason=keys[waiting.key]) for waiting in dirty if waiting.key in keys)
        fit = tuple(row for row in fetch.rows if record_key(row) not in unfit)
        return FetchedRows(
            fit, (*fetch.open, *still_open), fetch.error or SourceUnavailable(refetch.not_representable(still_open))
        )

    def require_allowed(self, new: Sequence[BadRecord]) -> None:
        """Raises Stopped at the first window with bad records that must not be quarantined, or with too many of
        them."""
        batch, windows = self.batch, {window.window: window.part.rows for window in self.batch.plan.windows}
        rule, log, table = batch.task.rule, batch.job.log, batch.task.table
        for window, count in sorted(Counter(entry.window for entry in new).items()):
            in_window = [entry for entry in new if entry.window == window]
            limit = max_bad_records(rule.quarantine, windows[window])
            keyless = next((entry for entry in in_window if own_key(entry.record) is None), None)
            if batch.plan.touched or (rule.on_bad_record is OnBadRecord.QUARANTINE and count <= limit and not keyless):
                continue
            first = keyless or in_window[0]
            others = [entry for entry in in_window if entry is not first]
            write_bad_records(log, table, [first, *others][:MAX_WRITTEN_ON_STOP], batch.now)
            refusal = BadRecordProblems(
                batch.job.step.definition.name, table, window, first.id, first.reason, log.store.root
            )
            if rule.on_bad_record is OnBadRecord.STOP:
                raise Stopped(window, refusal.stop())
            raise Stopped(window, refusal.without_key() if keyless else refusal.too_many(count, limit))

    def _known(self, bad: Iterable[BadRecord]) -> list[BadRecord]:
        """The bad records of these windows and, except in a repair, those in quarantine already; each record once."""
        batch = self.batch
        quarantined = [] if batch.plan.touched else quarantined_records(batch.job.log, batch.control.carry)
        by_id = {entry.id: entry for entry in (*bad, *quarantined)}
        return [entry for entry in by_id.values() if entry.record.order_key > batch.after]

    def _resolved(self, known: Sequence[BadRecord], entries: E) -> Resolution:
        """The result of the table names the decisions that helped."""
        job, task = self.batch.job, self.batch.task

        def reread(record: ChangeRecord) -> list[ChangeRecord]:
            original = as_it_came(record)
            records = reading.reread(job.connector, original, task, job.log.schema(original.schema_id), job.hash_key)
            return records if original is record else with_columns_of(records, job.log.schema(record.schema_id))

        schema, decisions = self.batch.plan.schema, decisions_by_record(job.log.decisions(), task.table)
        present = PresentColumns(self.batch.conversions, self.batch.images.initials(), schema.schema_id)
        resolution = self._representable_corrections(
            apply_decisions(known, decisions, reread, task.rule, schema, present), entries
        )
        self.batch.work.decided.clear()
        self.batch.work.decided.update((one, decisions[one].id) for one in resolution.decided_records)
        return resolution

    def _representable_corrections(self, resolution: Resolution, entries: E) -> Resolution:
        """A corrected record that the target cannot represent stays bad."""
        job = self.batch.job
        if not resolution.corrected:
            return resolution
        job.log.write_schema(self.batch.plan.schema)
        corrected = self._of(entries, resolution.corrected_records)
        unfit = corrected.unrepresentable(self.batch.images, job.tables)
        still_bad, fit = list[BadRecord](), list[CorrectedRecord]()
        for entry in resolution.corrected:
            reasons = [unfit[key] for key in map(record_key, entry.records) if key in unfit]
            if reasons:
                still_bad.append(replace(entry.bad, reason=reasons[0]))
            else:
                fit.append(entry)
        return replace(resolution, open=(*resolution.open, *still_bad), corrected=tuple(fit))

    @property
    def _keeps_changes(self) -> bool:
        """Every change counts, not only the last one of a row."""
        return self.batch.history is not History.NONE

    @property
    def _ignores_deletes(self) -> bool:
        return self.batch.task.rule.ignores_deletes


def _mark(record: ChangeRecord) -> Mark:
    return Mark(own_key(record) or "", record.order_key, record.tx_id)
