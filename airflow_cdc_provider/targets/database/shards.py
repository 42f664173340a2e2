"""Full copies into a table that other copies share: the rows of one copy are replaced in the transaction of its control
row. The first copy creates the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.targets.database.commit import Commit, Swap
from airflow_cdc_provider.targets.database.commits import add_missing_columns
from airflow_cdc_provider.targets.database.conflicts import retry_conflicts
from airflow_cdc_provider.targets.database.merge_sql import Effect, Statement, own_condition
from airflow_cdc_provider.targets.database.shared_columns import require_equal_columns
from airflow_cdc_provider.targets.database.staging import discard
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.fencing import superseded_by
from airflow_cdc_provider.targets.target import TargetState

TRIES = 5
"""Other copies may create the table first, or be dropped with it."""


def copy_into_shared(target: DatabaseTarget, swap: Swap, own: OwnRows, columns: Sequence[str]) -> None:
    """Replace the rows of one copy by those of ``swap.shadow``, with these ``columns``. Raises Fenced if the copy has
    changed, Blocked if the table cannot hold its rows beside the others."""
    for _ in range(TRIES - 1):
        state = _unchanged(target, swap)
        try:
            return _copy(target, swap, state, own, columns)
        except Fenced:
            continue
    return _copy(target, swap, _unchanged(target, swap), own, columns)


def _unchanged(target: DatabaseTarget, swap: Swap) -> TargetState:
    """The state of the copy, which may have got a table from another one."""
    state = target.state(swap.record.table, swap.target_table)
    if state.control != swap.expected.control or (state.exists and not swap.expected.exists):
        raise superseded_by(state, swap.record)
    return state


def _copy(target: DatabaseTarget, swap: Swap, state: TargetState, own: OwnRows, columns: Sequence[str]) -> None:
    if not state.shared:
        target.swap(replace(swap, expected=state))
        return
    sql, record = target.sql, swap.record
    assert record.schema is not None
    require_equal_columns(target, swap.target_table, record.table, record.schema, state)
    commit = Commit(swap.target_table, state, record, replaces=True, written=record.schema, loaded=swap.loaded)
    plan = MergePlan(record.schema, OnDelete.HARD, added=record.schema.columns)
    added, _ = retry_conflicts(partial(add_missing_columns, target, commit, plan))
    table, names = sql.table(swap.target_table), ", ".join(map(sql.quoted, columns))
    statements = (
        *added,
        Statement(Effect.DELETED, sql.delete_where(table, own_condition(sql, own, sql.deleted_row(table)))),
        Statement(Effect.INSERTED, f"INSERT INTO {table} ({names}) SELECT {names} FROM {sql.table(swap.shadow)}"),
    )
    target.commit(replace(commit, statements=statements))
    discard(target.server, swap.shadow)
