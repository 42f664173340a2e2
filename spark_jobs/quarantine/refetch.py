"""Keys whose row only the source has: it omitted changes of them, or sent a change without its values.

Such a key waits with its later records, like one with a bad record, but no decision is needed: the row is fetched from
the source at once. The fetched row is its state at that time, which may be newer than anything in the log. So it
replaces the missing change, and changes committed before the fetch are dropped, also those in windows that were begun
earlier.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from airflow_cdc_provider.connectors.copied import reading
from airflow_cdc_provider.connectors.source_features import FetchesRows
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken, Problem, Retryable, SourceUnavailable
from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_records import IMAGE_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import own_key
from airflow_cdc_provider.core.table.schema import Regime, TableSchema
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.whole_windows import WholeWindows
from spark_jobs.quarantine.entries import Entries
from spark_jobs.runtime.job import Job
from spark_jobs.windows import driver_reads
from spark_jobs.windows.driver_reads import CarriedRecord
from spark_jobs.windows.log_reader import WindowSlice

NEXT_WINDOWS = 2
"""The next window may have begun before the fetch, if an attempt that began earlier seals it; no later one has. The
first of those that ends where its source ends is the last with changes committed before the fetch."""


@dataclass(frozen=True)
class DirtyKey:
    """``since``: when it was first found; empty for a new one."""

    record: ChangeRecord
    reason: str
    since: str = ""

    @property
    def key(self) -> str:
        return own_key(self.record) or ""

    @property
    def as_carried(self) -> CarriedRecord:
        return CarriedRecord(self.record, Carried.DIRTY, self.since or None, self.reason)


@dataclass(frozen=True)
class FetchedRows:
    """``rows`` replace the missing changes: complete rows, or deletes. ``open``: keys without an answer, and why.
    ``last_known``: incomplete changes of rows that the source has deleted and the copy keeps. ``orphans``: the keys of
    rows that were fetched because the table lacks them."""

    rows: tuple[ChangeRecord, ...] = ()
    open: tuple[DirtyKey, ...] = ()
    error: Retryable | None = None
    last_known: tuple[ChangeRecord, ...] = ()
    orphans: frozenset[str] = frozenset()

    @property
    def kept(self) -> tuple[ChangeRecord, ...]:
        """Those with values. In all other columns the row keeps its values, because no newer ones are known."""
        return tuple(record for record in self.last_known if _has_values(record))

    def without_deletes(self, dirty: Sequence[DirtyKey], gone: Sequence[DirtyKey], rowless: Set[str]) -> FetchedRows:
        """For a copy that ignores deletes. ``dirty``: those that were asked for; ``gone``: those whose delete is in the
        stream. A deleted row does not need to be fetched; its known changes count, unless the copy has no row of it
        (``rowless``)."""
        deleted = {own_key(row) or "" for row in self.rows if row.op == Operation.DELETE}
        gone = [*gone, *(dirty_key for dirty_key in dirty if dirty_key.key in deleted)]
        rows = [row for row in self.rows if row.op != Operation.DELETE]
        absent = {dirty_key.key: dirty_key.record for dirty_key in gone if dirty_key.key in rowless}
        last_known = tuple(dirty_key.record for dirty_key in gone if dirty_key.key not in rowless)
        return replace(self, rows=(*rows, *map(_deleted, absent.values())), last_known=last_known)


def _has_values(record: ChangeRecord) -> bool:
    return record.op in IMAGE_OPERATIONS and "*" not in record.refetch


def _deleted(record: ChangeRecord) -> ChangeRecord:
    return ChangeRecord(
        record.table,
        Operation.DELETE,
        record.order_key,
        record.schema_id,
        key_before=own_key(record),
        tx_id=record.tx_id,
    )


def dirty_keys(log: ChangeLog, windows: Sequence[WindowSlice], after: str) -> list[DirtyKey]:
    """Changes without values above the order key."""
    unsent = pc.list_value_length(pc.field("refetch")) > 0
    filters = (pc.field("order_key") > after) & ((pc.field("op") == Operation.GAP.value) | unsent)
    return [DirtyKey(record, _reason(record)) for _, record in driver_reads.read_window_records(log, windows, filters)]


def _reason(record: ChangeRecord) -> str:
    if record.op == Operation.GAP:
        return "the source reported a change without its values"
    return f"the source did not send {', '.join(record.refetch).replace('*', 'the row')}"


def carried_dirty_keys(log: ChangeLog, carry: CarryOver) -> list[DirtyKey]:
    rows = driver_reads.read_carried_records(log, carry, Carried.DIRTY)
    return [DirtyKey(row.record, row.reason or "", row.since or "") for row in rows]


def fetch_rows(job: Job, task: TableTask, schema: TableSchema, dirty: Sequence[DirtyKey]) -> FetchedRows:
    """Fetch the rows from the source. Raises IntegrityBroken where it cannot return single rows,
    SourceUnreachable (SRC010) where they may be those of another source."""
    name = job.step.definition.name
    keyless = any(not dirty_key.key for dirty_key in dirty)
    if not isinstance(job.connector, FetchesRows) or schema.regime is not Regime.SINGLE or keyless:
        raise IntegrityBroken(_fetch_unsupported(name, task.table, dirty[0]))
    in_order = sorted(dirty, key=lambda dirty_key: dirty_key.record.order_key)
    last = {dirty_key.key: dirty_key.record for dirty_key in in_order}
    rows: dict[str, ChangeRecord] = {}
    error: Retryable | None = None
    try:
        source = job.source
        assert isinstance(source, FetchesRows)
        for row in reading.fetch_rows(source, task, schema, tuple(last.values()), job.hash_key):
            key = own_key(row) or ""
            rows[key] = replace(row, order_key=last[key].order_key, schema_id=schema.schema_id)
    except Retryable as failure:  # rows received so far are used, the others wait
        error = failure
    if error is None:
        job.require_planned_source()
    open_ = tuple(dirty_key for dirty_key in dirty if dirty_key.key not in rows)
    if open_ and error is None:
        error = SourceUnavailable(_no_answer(name, task.table, open_))
    return FetchedRows(tuple(rows.values()), open_, error)


def fetch_record(row: ChangeRecord, now: str, sealed: int) -> CarriedRecord:
    """The carry-over's record of a fetched row; window ``sealed`` was the last one when it was fetched."""
    taken = replace(row, before=None, after=None)
    return CarriedRecord(taken, Carried.FETCHED, now, None, str(sealed + NEXT_WINDOWS))


def not_replayed(fetched: Sequence[CarriedRecord], windows: WholeWindows, table: str, last: int) -> list[CarriedRecord]:
    """The rows whose earlier changes may be in a window after ``last``. Thousands of rows have few distinct windows."""
    replayed = {until: windows.is_replayed(table, int(until or 0), last) for until in {row.until for row in fetched}}
    return [row for row in fetched if not replayed[row.until]]


def with_returned_rows(fetched: Sequence[CarriedRecord], entries: Entries) -> list[CarriedRecord]:
    """The same records; rows that were deleted and that an entry has completely again are marked as present: their next
    changes are applied."""
    deleted = {own_key(row.record) or "" for row in fetched if row.record.op == Operation.DELETE}
    if not deleted:
        return list(fetched)
    back = entries.keys_with_rows(deleted)
    return [replace(row, record=_as_returned(row.record)) if own_key(row.record) in back else row for row in fetched]


def _as_returned(deleted: ChangeRecord) -> ChangeRecord:
    return replace(deleted, op=Operation.READ, key_before=None, key=deleted.key_before)


def earlier_fetches(log: ChangeLog, carry: CarryOver) -> list[CarriedRecord]:
    return driver_reads.read_carried_records(log, carry, Carried.FETCHED)


def _fetch_unsupported(name: str, table: str, first: DirtyKey) -> Problem:
    return Problem(
        "TGT038",
        f"rows of {table} must be fetched from the source, which cannot return single rows",
        where=f"{table}, key {first.key or 'unknown'}",
        found=first.reason,
        do=f"airflow cdc resync {name} --table {in_shell(table)}",
        data="nothing of the batch was applied; the change log keeps it",
    )


def not_representable(open_: Sequence[DirtyKey]) -> Problem:
    """The problem of fetched rows that the target cannot represent."""
    first = open_[0]
    return Problem(
        "TGT039",
        f"the target cannot represent a row of {first.record.table} that was fetched from the source",
        where=f"{first.record.table}, key {first.key}",
        found=first.reason,
        do="correct the value at the source: every run fetches the row again",
        data="its changes wait in the carry-over; all other rows are replicated",
    )


def _no_answer(name: str, table: str, open_: Sequence[DirtyKey]) -> Problem:
    keys = {dirty_key.key for dirty_key in open_}
    return Problem(
        "SRC020",
        f"the source did not return {len(keys):,} rows of {table}",
        where=f"{table}, for example key {open_[0].key}",
        found=open_[0].reason,
        do="every run fetches them again; if the problem persists, let the login read every row of the table; if the "
        f"source no longer has the rows: airflow cdc resync {name} --table {in_shell(table)}",
        data="their changes wait in the carry-over; all other rows are replicated",
    )
