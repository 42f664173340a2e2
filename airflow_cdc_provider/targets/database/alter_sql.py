"""Alterations of columns as SQL statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database.merge_sql import Effect, Statement
from airflow_cdc_provider.targets.database.sql import Sql


@runtime_checkable
class AltersColumns(Protocol):
    """The dialect of a database whose columns can be renamed, widened and dropped."""

    def widen(self, table: str, before: Column, after: Column, in_key: bool) -> str | None:
        """The statement; empty if the column has the type already, None if the database cannot keep every value.
        ``table``: SQL."""


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
            case Alter.DROP:
                text = f"ALTER TABLE {table} DROP COLUMN {name}"
            case _:
                text = f"UPDATE {table} SET {name} = NULL"
        if text is None:
            return None
        if text:
            statements.append(Statement(Effect.FILL if one.kind is Alter.SET_NULL else Effect.ALTER, text))
    return statements


def remaining(where: str, present: set[str], alterations: Sequence[Alteration]) -> list[Alteration]:
    """The alterations that are not done yet. ``present``: names of the columns now, in lower case. Raises Blocked
    (SCH003) if the new name of a column belongs to another one, which was dropped at the source."""
    due = []
    for one in alterations:
        old, new = one.column.name.lower(), one.to.name.lower() if one.to else ""
        if one.kind is Alter.RENAME and new in present and old != new:
            if old in present:
                raise _name_taken(where, one)
            continue
        if one.kind in (Alter.DROP, Alter.SET_NULL) and old not in present:
            continue
        due.append(one)
        if one.kind is Alter.RENAME:
            present = (present - {old}) | {new}
    return due


def _name_taken(where: str, one: Alteration) -> Blocked:
    assert one.to is not None
    return Blocked.of(
        "SCH003",
        f"column {one.column.name} cannot be renamed: the target has a column {one.to.name} already",
        where=where,
        found=f"{one.to.name}, which was dropped at the source before",
        do=f"drop column {one.to.name} of the target table if its values are not needed any more, or resync the table",
        data="the table is unchanged; the change log keeps what is not applied",
    )
