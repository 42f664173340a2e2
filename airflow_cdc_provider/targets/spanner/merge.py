"""A merge: one transaction if the batch fits one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan, schema_delta
from airflow_cdc_provider.targets.missing_rows import row_missing_in
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.catalog import find_columns
from airflow_cdc_provider.targets.spanner.changes import Counts
from airflow_cdc_provider.targets.spanner.columns import add_column
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.large_merge import begin, begun_merge
from airflow_cdc_provider.targets.spanner.names import column_name
from airflow_cdc_provider.targets.spanner.parts import PartsOf, SavedRows
from airflow_cdc_provider.targets.spanner.rows import Applied, KeyedRows, KeylessRows, Stored, least_order
from airflow_cdc_provider.targets.spanner.session import Session, Transaction
from airflow_cdc_provider.targets.spanner.sizes import COMMIT_BYTES, CONTROL_MUTATIONS, bytes_of, mutations_of
from airflow_cdc_provider.targets.spanner.sweep import Sweep
from airflow_cdc_provider.targets.spanner.target import SpannerTarget, require
from airflow_cdc_provider.targets.target import TargetState


class Exceeds(Exception):
    """The merge does not fit one transaction. Nothing is committed."""


def add_columns(database: SpannerDatabase, session: Session, target_table: str, plan: MergePlan) -> MergePlan:
    """Add the columns that the table lacks, before any transaction: an attempt that dies then leaves an empty column.
    Returns the plan with the columns that are new to the table."""
    if not plan.added:
        return plan
    present = {name.lower() for name in find_columns(session, target_table)}
    known = [column.name for column in plan.added if column_name(column.name).lower() in present]
    delta = schema_delta(plan.added, known)
    if delta.missing:
        keyless = not plan.schema.key
        database.change_schema(
            [add_column(target_table, column, database.options.json, keyless) for column in delta.missing]
        )
    return replace(plan, added=delta.added)


def merge_at_once(
    target: SpannerTarget,
    session: Session,
    stored: Stored,
    rows: pa.Table,
    plan: MergePlan,
    expected: TargetState,
    record: ControlRecord,
) -> Counts:
    """Rows and cursor in one transaction. Raises Exceeds, Fenced, and RowMissing if the target lacks the row of a
    change."""
    left = target.database.options.max_mutations - CONTROL_MUTATIONS - int(mutations_of(rows, stored, plan).sum())
    if left < 0 or int(bytes_of(rows).sum()) > COMMIT_BYTES:
        raise Exceeds

    def work(transaction: Transaction) -> Counts:
        applied = _apply(transaction, stored, rows, plan, left, expected)
        if applied.refused:
            raise row_missing_in(target.locate(stored.table), record)
        transaction.write(*applied.mutations)
        failpoint("merge.before_commit")
        return applied.counts

    counts = target.commit(session, stored.table, expected, record, work)
    failpoint("merge.after_commit")
    return counts


def _apply(
    transaction: Transaction, stored: Stored, rows: pa.Table, plan: MergePlan, left: int, expected: TargetState
) -> Applied:
    if plan.truncated_at:
        raise Exceeds
    if plan.truncated and not plan.soft:
        return _apply_to_empty(transaction, stored, rows, plan, expected)
    swept = Applied([], Counts())
    if Sweep.needed(plan):
        swept = _sweep(transaction, Sweep(stored, plan, least_order(rows, stored)), left)
    if stored.schema.key:
        keyed = KeyedRows(stored, rows)
        changed = keyed.apply(plan, keyed.found(transaction.read))
    else:
        changed = KeylessRows(stored, rows).apply(transaction.read)
    return Applied([*swept.mutations, *changed.mutations], swept.counts + changed.counts, changed.refused)


def _sweep(transaction: Transaction, sweep: Sweep, left: int) -> Applied:
    """The whole table in one page. Rows without a key would change the hashes by which this transaction finds them."""
    if sweep.rehashes:
        raise Exceeds
    limit = left // sweep.mutations_of_row
    page = sweep.page(transaction.read, None, limit) if limit else None
    if page is None or page.last is not None:
        raise Exceeds
    return Applied(page.mutations, page.counts)


def _apply_to_empty(
    transaction: Transaction, stored: Stored, rows: pa.Table, plan: MergePlan, expected: TargetState
) -> Applied:
    """All rows leave by one mutation, then the staged ones arrive. A repair keeps rows of its own keys, so it deletes
    row by row."""
    if stored.schema.key:
        keyed = KeyedRows(stored, rows)
        before = least_order(rows, stored)
        if any(found.order >= before for found in keyed.found(transaction.read).values()):
            raise Exceeds
        changed = keyed.apply(plan, {})
    else:
        changed = KeylessRows(stored, rows).apply(transaction.read)
    assert expected.control is not None
    deleted = Counts(deleted=expected.control.rows or 0)
    everything = mutations.delete(stored.table, mutations.all_keys())
    return Applied([everything, *changed.mutations], changed.counts + deleted, changed.refused)


def begin_in_parts(
    target: SpannerTarget,
    session: Session,
    stored: Stored,
    saved: SavedRows,
    plan: MergePlan,
    expected: TargetState,
    record: ControlRecord,
) -> None:
    """Decide a merge of saved rows. Raises Fenced, and RowMissing if the target lacks the row of a change."""
    if saved.refused:
        raise row_missing_in(target.locate(stored.table), record)

    def work(transaction: Transaction) -> None:
        if begun_merge(transaction, PartsOf(stored.table, record.nonce)) is None:
            row = require(transaction, stored.table, expected, record)
            if row is not None:
                begin(transaction, row, stored.table, saved, plan, record)

    failpoint("merge.saved")
    session.transact(work)
    failpoint("merge.begun")
