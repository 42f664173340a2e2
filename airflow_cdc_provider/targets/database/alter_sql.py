"""Alterations of columns as SQL statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database.merge_sql import Effect, Statement
from airflow_cdc_provider.targets.database.sql import Sql


@runtime_checkable
class AltersColumns(Protocol):
    """The dialect of a database whose columns can be renamed, widened, dropped and commented."""

    def widen(self, table: str, before: Column, after: Column, in_key: bool) -> str | None:
        """The statement; empty if the column has the type already, None if the database cannot keep every value.
        ``table``: SQL."""

    def comment_on(self, table: str, column: Column, in_key: bool, text: str) -> str:
        """The statement that sets the comment of a column; no text removes it. ``table``: SQL."""


def alteration_statements(sql: Sql, target_table: str, alterations: Sequence[Alteration]) -> list[Statement] | None:
    """None if the database cannot execute one of them."""
    if not isinstance(sql, AltersColumns):
        return None
    table, statements = sql.table(target_table), list[Statement]()
    for one in alterations:
        name = sql.quoted(one.column.name)
        match one.kind:
            case Alter.RENAME if one.to:
                text: str | None = f"ALTER TABLE {table} RENAME COLUMN {name} TO {sql.quoted(one.to.name)}"
            case Alter.WIDEN if one.to:
                text = sql.widen(table, one.column, one.to, one.in_key)
            case Alter.COMMENT:
                text = sql.comment_on(table, one.column, one.in_key, one.comment)
            case Alter.DROP:
                text = f"ALTER TABLE {table} DROP COLUMN {name}"
            case _:
                text = f"UPDATE {table} SET {name} = NULL"
        if text is None:
            return None
        if text:
            statements.append(Statement(Effect.FILL if one.kind is Alter.SET_NULL else Effect.ALTER, text))
    return statements
