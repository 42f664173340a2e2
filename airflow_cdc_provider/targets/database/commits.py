"""Commits of a job: merge staged rows into a table, or swap in a new copy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from airflow_cdc_provider.core.errors import RowMissing
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan, schema_delta
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.cuts import invalidate_cut
from airflow_cdc_provider.targets.database.merge_sql import Counts, Effect, merge_statements
from airflow_cdc_provider.targets.database.names import REPLACED, staging_table
from airflow_cdc_provider.targets.database.sql import add_columns
from airflow_cdc_provider.targets.database.target import DatabaseTarget, LockedTable
from airflow_cdc_provider.targets.database.text_loads import delete_loads
from airflow_cdc_provider.targets.fencing import superseded_by
from airflow_cdc_provider.targets.target import TargetState


def merge(
    target: DatabaseTarget,
    target_table: str,
    staged: str,
    plan: MergePlan,
    expected: TargetState,
    record: ControlRecord,
) -> Counts:
    """Rows by effect; empty if the response was lost. Raises Fenced, and RowMissing if the target lacks the row of a
    change; then nothing is applied."""

    def work(table: LockedTable) -> Counts:
        adjusted_plan = replace(plan, added=_add_columns(target, table, target_table, plan.added))
        sql, counts = target.sql, dict.fromkeys(Effect, 0)
        for statement in merge_statements(sql, sql.table(target_table), sql.table(staged), adjusted_plan):
            table.cursor.execute(statement.text)
            if statement.effect is not Effect.REFUSE:
                counts[statement.effect] += max(table.cursor.rowcount, 0)
            elif table.cursor.fetchone()[0]:
                raise _row_missing(target.locate(target_table), record)
        failpoint("merge.before_commit")
        return counts

    counts = target.commit(target_table, expected, record, work)
    failpoint("merge.after_commit")
    return counts or {}


def swap_in(
    target: DatabaseTarget, target_table: str, shadow: str, expected: TargetState, record: ControlRecord
) -> None:
    """Rename a loaded copy to the table's name; its control row has its identity (the record's nonce).

    A crash before the swap leaves the old copy with its own control row. A crash after it leaves the new copy, whose
    control row was written first. There is no state in between.
    """
    swap = partial(_swap_in, target, target_table, shadow, expected, record)
    target.retry_lost_response(target_table, record, swap)


def _swap_in(
    target: DatabaseTarget, target_table: str, shadow: str, expected: TargetState, record: ControlRecord
) -> None:
    replaced = staging_table(target_table, REPLACED, record.attempt)
    with target.server.session("commit") as connection:
        cursor = connection.cursor()
        target.server.lock_table(cursor, target_table)
        target.require_unchanged(cursor, target_table, expected, record)
        control.delete(cursor, target.sql, target_table, [record.nonce])
        control.insert(cursor, target.sql, target_table, record.nonce, record)
        if expected.control is not None and not target.server.swaps_under_lock:
            _raise_fence(cursor, target, target_table, expected, record)
        invalidate_cut(cursor, target.sql, target_table)
        delete_loads(target.server, cursor, shadow)
        target.server.swap(connection, shadow, target_table, replaced, expected.exists)


def _raise_fence(
    cursor: Any, target: DatabaseTarget, target_table: str, expected: TargetState, record: ControlRecord
) -> None:
    """In the old copy, so that no other attempt commits between this commit and the swap."""
    assert expected.control is not None
    raised = replace(expected.control.fenced(), fence=record.fence, attempt=record.attempt)
    if not control.advance(cursor, target.sql, target_table, expected.identity, expected.control, raised):
        raise superseded_by(target.read_state(cursor, record.table, target_table), record)


def _add_columns(
    target: DatabaseTarget, table: LockedTable, target_table: str, added: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Add the columns that the table lacks. Returns those that are new to it."""
    if not added:
        return ()
    change = schema_delta(added, target.server.columns(table.cursor, target_table))
    if change.missing:
        for statement in add_columns(target.sql, target_table, change.missing):
            table.cursor.execute(statement)
        target.server.lock_table(table.cursor, target_table)  # some servers commit with the statement
    return change.added


def _row_missing(where: str, record: ControlRecord) -> RowMissing:
    return RowMissing.of(
        "TGT031",
        "the target lacks the row of a change: rows were removed by another writer",
        where=f"{record.table} at {where}, up to window {record.window}",
        found="an update or a delete without its row",
        do=f"airflow cdc resync {record.replicator} --table {record.table}",
        data="nothing of the batch was applied; the change log keeps it",
    )
