"""Several source tables, the shards, in one target table. Pure.

A column of the target, the first one of its key, contains the shard of each row. Every shard is a copy of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.placeholders import PLACEHOLDER
from airflow_cdc_provider.core.spec.routing import missing_part, name_parts
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.schema import Regime, TableSchema


def with_shard_value(rule: TableRule, table: str) -> tuple[TableRule, tuple[Problem, ...]]:
    """The rule with the value of this source table, and why there is none."""
    if not rule.shard_column:
        return rule, ()
    if problem := missing_part("shard_value", rule.shard_value, table):
        return rule, (problem,)
    parts = name_parts(table)
    value = PLACEHOLDER.sub(lambda match: parts[match[1]], rule.shard_value) or table
    return replace(rule, shard_value=value), ()


def shard_problems(rule: TableRule, selected: TableSchema, dropped: OnDroppedTable | None) -> Iterator[Problem]:
    """Why a table cannot be a shard. ``selected``: the selected columns of the source, with the effective key.
    ``dropped``: what happens to the copies of dropped tables."""
    if not rule.shard_column:
        return
    reasons = {
        "has no key, so a change cannot be found among the rows of others": not selected.key,
        "may have two rows with one key for a moment": bool(selected.key) and selected.regime is Regime.DOUBLE,
        "keeps a history": rule.history is not History.NONE,
        "would take the rows of the others with it (`dropped_tables: drop`)": dropped is OnDroppedTable.DROP,
        "takes over an existing table, whose rows have no shard": rule.snapshot.takes_over,
    }
    for reason in (reason for reason, applies in reasons.items() if applies):
        yield Problem(
            "DEF085",
            f"{selected.table} cannot share its target table with others: it {reason}",
            where=selected.table,
            found=f"shard_column: {rule.shard_column}",
            allowed="tables with a key of their own, without `history` and `dropped_tables: drop`, that are copied",
            do="change that, or give the table a `target` of its own, without `shard_column`",
        )


def schema_difference(one: TableSchema, other: TableSchema) -> str:
    """The key, or else the first common column, that two schemas have differently; empty if there is none."""
    if [name.lower() for name in one.key] != [name.lower() for name in other.key]:
        return f"the key is ({', '.join(one.key)}) and ({', '.join(other.key)})"
    types = {column.name.lower(): column for column in other.columns}
    for column in one.columns:
        found = types.get(column.name.lower())
        if found is not None and found.type != column.type:
            return f"column {column.name} is {column.type} and {found.type}"
        nullable = column.name in one.key and found is not None and found.nullable != column.nullable
        if nullable:
            return f"only one key column {column.name} may be NULL"
    return ""
