"""Commits of a job: merge staged rows into a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.alterations import Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan, schema_delta
from airflow_cdc_provider.targets.database.alter_sql import alteration_statements
from airflow_cdc_provider.targets.database.commit import Commit, Loaded
from airflow_cdc_provider.targets.database.conflicts import retry_conflicts
from airflow_cdc_provider.targets.database.merge_sql import Counts, Effect, Statement, merge_statements
from airflow_cdc_provider.targets.database.shared_columns import require_equal_columns
from airflow_cdc_provider.targets.database.sql import add_columns
from airflow_cdc_provider.targets.database.staging import run
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.due_alterations import remaining
from airflow_cdc_provider.targets.fencing import claim_fence
from airflow_cdc_provider.targets.target import TargetState


def merge(
    target: DatabaseTarget,
    target_table: str,
    staged: Loaded,
    plan: MergePlan,
    expected: TargetState,
    record: ControlRecord,
) -> Counts:
    """Rows by effect; empty if the response was lost. Raises Fenced, RowMissing if the target lacks the row of a
    change, and Blocked if it has other columns; then nothing is applied, but the table may have gained columns without
    values."""
    sql, commit = target.sql, Commit(target_table, expected, record)
    alters: list[Statement] = []
    if plan.added and expected.shared:
        require_equal_columns(target, target_table, record.table, plan.schema, expected)
    if plan.added:
        alters, plan = retry_conflicts(partial(add_missing_columns, target, commit, plan))
    bounds = target.key_bounds(target_table, sql.table(staged.table), plan.schema) if plan.schema.key else ""
    changes = merge_statements(sql, sql.table(target_table), sql.table(staged.table), plan, bounds)
    failpoint("merge.before_commit")
    counts = target.commit(replace(commit, statements=(*alters, *changes), written=plan.schema, loaded=staged))
    failpoint("merge.after_commit")
    return counts or {}


def alter(
    target: DatabaseTarget,
    target_table: str,
    expected: TargetState,
    record: ControlRecord,
    alterations: Sequence[Alteration],
) -> ControlRecord:
    """As ``TargetTables.fence``, with alterations of columns. Raises Fenced if the table has changed."""
    record = claim_fence(target.log, record, expected)
    target.settle_swaps(target_table)
    commit = Commit(target_table, expected, record)
    statements = retry_conflicts(partial(_prepare_alterations, target, commit, alterations))
    target.commit(replace(commit, statements=tuple(statements)))
    return record


def _prepare_alterations(target: DatabaseTarget, commit: Commit, alterations: Sequence[Alteration]) -> list[Statement]:
    """The statements for the commit. A server that commits with each ALTER TABLE executes these now; those that an
    earlier attempt has executed are left out."""
    with target.server.session("alter") as connection:
        cursor = connection.cursor()
        target.server.lock_table(cursor, commit.target_table)
        target.require_unchanged(cursor, commit.target_table, commit.expected, commit.record)
        present = target.server.columns(cursor, commit.target_table)
        due = remaining(target.locate(commit.target_table), present, alterations, target.sql.column_id)
        statements = alteration_statements(target.sql, commit.target_table, due) or []
        if not target.server.alters_in_transactions:
            run(cursor, [statement.text for statement in statements if statement.effect is Effect.ALTER])
            connection.commit()
            statements = [statement for statement in statements if statement.effect is not Effect.ALTER]
        return statements


def add_missing_columns(target: DatabaseTarget, commit: Commit, plan: MergePlan) -> tuple[list[Statement], MergePlan]:
    """The statements that add the columns which the table lacks, for the commit; none if they are added already,
    because they would end its transaction. And the plan, with the columns that are new to the table."""
    with target.server.session("alter") as connection:
        cursor = connection.cursor()
        target.server.lock_table(cursor, commit.target_table)
        target.require_unchanged(cursor, commit.target_table, commit.expected, commit.record)
        present = target.server.columns(cursor, commit.target_table)
        change = schema_delta(plan.added, present, target.sql.column_id)
        alters = add_columns(target.sql, commit.target_table, change.missing)
        if not target.server.alters_in_transactions:
            run(cursor, alters)
            connection.commit()
            alters = []
        return [Statement(Effect.ALTER, text) for text in alters], replace(plan, added=change.added)
