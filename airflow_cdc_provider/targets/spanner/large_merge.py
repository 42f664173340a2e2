"""A merge that exceeds one transaction.

1. The rows are saved in parts in the database. Nothing has changed yet.
2. One transaction writes into the control row that the merge has begun. This decides it, as a commit does.
3. Each part is applied by a transaction of its own, which also marks the part.
4. One transaction writes the new control record and removes the parts.

A crash after 2 leaves a table of which some parts are applied. The next process that reads its state goes on with 3,
whether the one that began the merge is still alive or not, so nothing else is committed in between. A read of the
published cut shows no part of such a merge; a read of the newest rows may.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from queue import SimpleQueue

import pyarrow as pa
from google.protobuf.struct_pb2 import Value

from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.targets.spanner import control, mutations
from airflow_cdc_provider.targets.spanner.changes import Counts
from airflow_cdc_provider.targets.spanner.control import Begun, ControlRow, committed
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.names import PARTS
from airflow_cdc_provider.targets.spanner.options import SpannerOptions
from airflow_cdc_provider.targets.spanner.parts import (
    SWEEP,
    PartKey,
    PartsOf,
    SavedRows,
    applied_counts,
    load,
    load_position,
    unapplied,
)
from airflow_cdc_provider.targets.spanner.rows import Applied, KeyedRows, KeylessRows, Stored
from airflow_cdc_provider.targets.spanner.session import Session, Transaction
from airflow_cdc_provider.targets.spanner.sizes import CONTROL_MUTATIONS
from airflow_cdc_provider.targets.spanner.sweep import Sweep
from airflow_cdc_provider.targets.spanner.values import text_value

PARTS_AT_ONCE = 4
"""Of one process: most of the time of a part is spent waiting for Spanner. A session has one transaction at a time."""

SWEEP_PART = PartKey(SWEEP, "", 0)


def begin(
    transaction: Transaction,
    row: ControlRow,
    target_table: str,
    saved: SavedRows,
    plan: MergePlan,
    record: ControlRecord,
) -> None:
    """``row``: the control row, which is as expected."""
    parts, sweeps = PartsOf(target_table, record.nonce), Sweep.needed(plan)
    tasks = tuple(sorted({part.task for part in saved.parts}))
    begun = Begun(record, plan, tasks, len(saved.parts) + sweeps, sweeps, saved.least)
    transaction.write(control.write(target_table, replace(row, begun=begun, loading="")), *parts.without_others())
    if sweeps:
        transaction.write(parts.row(SWEEP_PART, 0, applied=Value(bool_value=False)))


def end_merge(database: SpannerDatabase, session: Session, target_table: str) -> Counts:
    """Apply what is left of a merge that has begun, and end it. Nothing if there is none."""
    begun = control.read(session.read, target_table).begun
    if begun is None:
        return Counts()
    parts = PartsOf(target_table, begun.record.nonce)
    sweep(database.options, session, parts)
    for _, phase in groupby(unapplied(session.read, parts, begun.tasks), attrgetter("phase")):
        apply_parts(database, parts, list(phase))
    return end(database, session, parts)


def sweep(options: SpannerOptions, session: Session, parts: PartsOf) -> None:
    while session.transact(partial(_sweep_page, options, parts)):
        failpoint("merge.after_part")


def apply_parts(database: SpannerDatabase, parts: PartsOf, keys: Sequence[PartKey]) -> None:
    """Parts of one phase, several at a time. Nothing is done for those that are applied already, or if the merge has
    ended."""
    sessions = SimpleQueue[Session]()

    def apply(part: PartKey) -> None:
        session = sessions.get()
        try:
            session.transact(partial(_apply_part, database.options, parts, part))
            failpoint("merge.after_part")
        finally:
            sessions.put(session)

    at_once = min(len(keys), PARTS_AT_ONCE)
    if not at_once:
        return
    with ExitStack() as opened, ThreadPoolExecutor(at_once, thread_name_prefix="part") as pool:
        for _ in range(at_once):
            sessions.put(opened.enter_context(database.session("apply")))
        list(pool.map(apply, keys))


def end(database: SpannerDatabase, session: Session, parts: PartsOf) -> Counts:
    """The new control record, when all parts are applied. No counts if another process has ended the merge."""
    failpoint("merge.before_end")
    return session.transact(partial(_end, database, parts))


def begun_merge(transaction: Transaction, parts: PartsOf) -> tuple[ControlRow, Begun] | None:
    """The control row and the merge; None if it has not begun, or has ended."""
    row = control.read(transaction.read, parts.target_table)
    if row.begun is None or row.begun.record.nonce != parts.nonce:
        return None
    return row, row.begun


def _sweep_page(options: SpannerOptions, parts: PartsOf, transaction: Transaction) -> bool:
    """Whether there is a next page."""
    found = begun_merge(transaction, parts)
    if found is None or not found[1].sweeps:
        return False
    ended, position, counts = load_position(transaction.read, parts, SWEEP_PART)
    if ended:
        return False
    plan, before = found[1].plan, found[1].before
    one = Sweep(_stored(options, parts, plan), plan, before)
    page = one.page(transaction.read, position, (options.max_mutations - CONTROL_MUTATIONS) // one.mutations_of_row)
    transaction.write(*page.mutations, parts.moved(SWEEP_PART, page.last, counts + page.counts))
    return page.last is not None


def _apply_part(options: SpannerOptions, parts: PartsOf, part: PartKey, transaction: Transaction) -> None:
    found = begun_merge(transaction, parts)
    rows = load(transaction.read, parts, part) if found else None
    if found is None or rows is None:
        return
    plan = found[1].plan
    applied = _applied(transaction, _stored(options, parts, plan), rows, plan)
    transaction.write(*applied.mutations, *parts.marked(part, applied.counts))


def _applied(transaction: Transaction, stored: Stored, rows: pa.Table, plan: MergePlan) -> Applied:
    """A row that another writer has removed since the merge began is not missed: it was there when the merge was
    decided."""
    if not stored.schema.key:
        return KeylessRows(stored, rows).apply(transaction.read)
    keyed = KeyedRows(stored, rows)
    return keyed.apply(plan, keyed.found(transaction.read))


def _end(database: SpannerDatabase, parts: PartsOf, transaction: Transaction) -> Counts:
    found = begun_merge(transaction, parts)
    if found is None:
        return Counts()
    row, begun = found
    counts, number = applied_counts(transaction.read, parts)
    if number != begun.parts:
        raise _parts_missing(database, parts, begun, number)
    record = replace(begun.record, rows=counts.rows_after(row.record.rows if row.record else None))
    transaction.write(
        control.write(parts.target_table, committed(row, record)),
        mutations.delete(PARTS, mutations.prefixes([[text_value(parts.target_table)]])),
    )
    return counts


def _stored(options: SpannerOptions, parts: PartsOf, plan: MergePlan) -> Stored:
    return Stored(parts.target_table, plan.schema, plan.soft, options.json)


def _parts_missing(database: SpannerDatabase, parts: PartsOf, begun: Begun, number: int) -> TargetUnavailable:
    record = begun.record
    return TargetUnavailable.of(
        "TGT087",
        "rows of a merge that has begun are missing: another writer has removed them",
        f"{record.table} at {database.address}, table {parts.target_table}, up to window {record.window}",
        f"{number} parts",
        f"{begun.parts} parts",
        f"drop the table, then airflow cdc resync {record.replicator} --table {in_shell(record.table)}",
        "a part of the batch was applied",
    )
