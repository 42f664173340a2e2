"""Why the copy of a table cannot keep a history. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.copies import HISTORY, source_table
from airflow_cdc_provider.core.table.schema import Regime, TableSchema


def history_problems(rule: TableRule, selected: TableSchema) -> tuple[Problem, ...]:
    """``selected``: the selected columns of the source, with the effective key."""
    return tuple(_problems(rule, selected))


def _problems(rule: TableRule, selected: TableSchema) -> Iterator[Problem]:
    if source_table(selected.table) != selected.table:
        yield Problem(
            "DEF084",
            f"the name of {selected.table} is that of another copy",
            where=selected.table,
            found=selected.table,
            allowed=f"names that do not end with {HISTORY}, or with @ and the name of a target",
            do="rename the table at the source, or leave it out",
        )
    if rule.history is History.NONE:
        return
    if not selected.key:
        yield Problem(
            "DEF080",
            f"{selected.table} has no key, so the changes of a row cannot be distinguished from those of others",
            where=selected.table,
            found=f"history: {rule.history}",
            allowed="history: none",
            do="set `key`, or remove `history`",
        )
    elif selected.regime is Regime.UNORDERED and rule.history is History.SCD2:
        yield Problem(
            "DEF081",
            f"the changes of {selected.table} arrive out of order, and versions are made in their order",
            where=selected.table,
            found=f"history: {rule.history}",
            allowed="history: log, history: none",
            do="use `history: log`: it has the order of the changes in a column",
        )
