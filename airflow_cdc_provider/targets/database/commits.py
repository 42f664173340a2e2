"""What a job commits: staged rows merged into a table, or a whole new copy in its place."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.errors import Problem, RowMissing, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan, schema_delta
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.cuts import leave_cut
from airflow_cdc_provider.targets.database.merge_sql import Counts, Effect, merge_statements
from airflow_cdc_provider.targets.database.names import REPLACED, staging_table
from airflow_cdc_provider.targets.database.sql import add_columns
from airflow_cdc_provider.targets.database.staging import forget_loads
from airflow_cdc_provider.targets.database.target import TRIES, DatabaseTarget, Open
from airflow_cdc_provider.targets.target import TargetState


def merge(
    target: DatabaseTarget,
    target_table: str,
    staged: str,
    plan: MergePlan,
    expected: TargetState,
    record: ControlRecord,
) -> Counts:
    """Empty where the answer was lost. Raises Fenced, and RowMissing where a change
    meets no row; then nothing is applied."""

    def work(table: Open) -> Counts:
        grown = replace(plan, added=_grow(target, table, target_table, plan.added))
        sql, counts = target.sql, dict.fromkeys(Effect, 0)
        for statement in merge_statements(sql, sql.table(target_table), sql.table(staged), grown):
            table.cursor.execute(statement.text)
            if statement.effect is not Effect.REFUSE:
                counts[statement.effect] += max(table.cursor.rowcount, 0)
            elif table.cursor.fetchone()[0]:
                raise _no_row(target.locate(target_table), record)
        failpoint("merge.before_commit")
        return counts

    counts = target.commit(target_table, expected, record, work)
    failpoint("merge.after_commit")
    return counts or {}


def put_in_place(
    target: DatabaseTarget, target_table: str, shadow: str, expected: TargetState, record: ControlRecord
) -> None:
    """Let a loaded copy stand under the table's name, with the control row of its identity (the record's nonce).

    Dies before the swap: the old copy stands, and its own control row counts. Dies behind it: the new copy stands, and
    so does its row, which was there first. There is no moment between.
    """
    lost: TargetUnavailable | None = None
    for _ in range(TRIES):
        try:
            return _put_in_place(target, target_table, shadow, expected, record)
        except TargetUnavailable as error:
            lost = error
        if target.stands(target_table, record):
            return None
    assert lost is not None
    raise lost


def _put_in_place(
    target: DatabaseTarget, target_table: str, shadow: str, expected: TargetState, record: ControlRecord
) -> None:
    replaced = staging_table(target_table, REPLACED, record.attempt)
    with target.server.session("commit") as connection:
        cursor = connection.cursor()
        target.server.lock(cursor, target.lock_name(target_table))
        target.require(cursor, target_table, expected, record)
        control.forget_others(cursor, target.sql, target_table, expected.identity)
        control.make(cursor, target.sql, target_table, record.nonce, record)
        leave_cut(cursor, target.sql, target_table)
        forget_loads(target.sql, cursor, shadow)
        target.server.swap(connection, shadow, target_table, replaced, expected.exists)


def _grow(target: DatabaseTarget, table: Open, target_table: str, added: tuple[Column, ...]) -> tuple[Column, ...]:
    """Add the columns the table lacks; returned are those that are new to it."""
    if not added:
        return ()
    grown = schema_delta(added, target.server.columns(table.cursor, target_table))
    if grown.missing:
        table.cursor.execute(add_columns(target.sql, target_table, grown.missing))
    return grown.added


def _no_row(where: str, record: ControlRecord) -> RowMissing:
    return RowMissing(
        Problem(
            "TGT031",
            "a change met no row in the target: rows were removed by somebody else",
            where=f"{record.table} at {where}, up to window {record.window}",
            found="an update or a delete without its row",
            do=f"airflow cdc resync {record.replicator} --table {record.table}",
            data="nothing of the batch was applied; the change log keeps it",
        )
    )
