"""The values with which an operator corrects a bad record: canonical for their columns, and of the same row. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.columns.given_values import canonical_value, form_of
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.quarantine import own_key
from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.core.table.schema import Column, TableSchema

NOTHING_DECIDED = "nothing was decided"
AT_THE_SOURCE = "correct the row at the source, then discard the record, or resync the table"


@dataclass(frozen=True)
class CorrectedTable:
    """``copy``: the copy in which a record waits. ``schema``: of its rows. ``own``: its rows in a shared table."""

    copy: str
    schema: TableSchema | None
    own: OwnRows | None = None

    @property
    def columns(self) -> dict[str, Column]:
        return {column.name: column for column in self.schema.columns} if self.schema else {}

    @property
    def plain(self) -> list[str]:
        """The columns that are not hashed, masked or truncated."""
        return [name for name, column in self.columns.items() if not column.is_masked]


def canonical_values(
    table: CorrectedTable, record: ChangeRecord | None, given: Mapping[str, str | None]
) -> dict[str, Any]:
    """``record``: that they correct; None if it is gone. ``given``: texts, None for NULL.

    Raises CommandRefused: CLI016 for columns that do not exist, CLI023 for hidden ones, CLI025 for values that a column
    does not have, CLI026 for values that would make the change one of another row."""
    _require_columns(table, given)
    values = {name: _value(table, name, text) for name, text in given.items()}
    _require_same_row(table, record, values)
    return values


def _require_columns(table: CorrectedTable, given: Mapping[str, str | None]) -> None:
    if unknown := [name for name in given if name not in table.columns]:
        raise CommandRefused.of(
            "CLI016", "unknown column", table.copy, ", ".join(unknown), ", ".join(table.columns), data=NOTHING_DECIDED
        )
    if hidden := [name for name in given if name not in table.plain]:
        raise CommandRefused.of(
            "CLI023",
            "a value of a column that is hashed, masked or truncated would be stored in clear",
            where=table.copy,
            found=", ".join(hidden),
            allowed=", ".join(table.plain),
            do=AT_THE_SOURCE,
            data=NOTHING_DECIDED,
        )


def _value(table: CorrectedTable, name: str, text: str | None) -> Any:
    assert table.schema is not None
    column = table.columns[name]
    if text is None:
        if column.nullable and name not in table.schema.key:
            return None
        raise _no_value(table, column, "NULL", f"a value: {form_of(column.type)}")
    try:
        return canonical_value(text, column.type)
    except ValueError:
        raise _no_value(table, column, "another text", form_of(column.type)) from None


def _no_value(table: CorrectedTable, column: Column, found: str, allowed: str) -> CommandRefused:
    return CommandRefused.of(
        "CLI025",
        f"not a value of column {column.name}, which is {column.type}",
        where=table.copy,
        found=found,
        allowed=allowed,
        do="give the exact value; on the command line, --set-null gives NULL",
        data=NOTHING_DECIDED,
    )


def _require_same_row(table: CorrectedTable, record: ChangeRecord | None, values: Mapping[str, Any]) -> None:
    fixed = _fixed_values(table, record)
    other = [name for name in values if name in fixed and canonical(values[name]) != canonical(fixed[name])]
    if other:
        raise CommandRefused.of(
            "CLI026",
            "the values would make the change one of another row",
            where=table.copy,
            found=", ".join(other),
            allowed="in these columns, the values of the record's own row",
            do=AT_THE_SOURCE,
            data=NOTHING_DECIDED,
        )


def _fixed_values(table: CorrectedTable, record: ChangeRecord | None) -> dict[str, Any]:
    """Those that say which row the record is about: its key, and the part of a shared table."""
    own = {table.own.column.name: table.own.value} if table.own else {}
    key = own_key(record) if record else None
    names = table.schema.key if table.schema else ()
    return {**own, **(dict(zip(names, json.loads(key), strict=False)) if key else {})}
