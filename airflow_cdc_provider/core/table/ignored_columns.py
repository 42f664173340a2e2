"""Columns that a copy leaves out by an operator's answer. An answer counts for the column that it was about: another
column that gets its name later is not left out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_cdc_provider.core.table.schema import Column, TableSchema

Ignored = Mapping[str, str]
"""Name in the source → id of the column; empty if the source has no ids."""


def is_ignored(column: Column, ignored: Ignored) -> bool:
    if column.source_name not in ignored:
        return False
    known = ignored[column.source_name]
    return not (known and column.id) or column.id == known


def without_ignored(schema: TableSchema, ignored: Ignored) -> TableSchema:
    if not ignored:
        return schema
    return replace(schema, columns=tuple(column for column in schema.columns if not is_ignored(column, ignored)))


def still_ignored(ignored: Ignored, schema: TableSchema) -> dict[str, str]:
    """Those that the table still has."""
    present = {column.source_name for column in schema.columns if is_ignored(column, ignored)}
    return {name: column_id for name, column_id in ignored.items() if name in present}


def ids_of(names: Iterable[str], schema: TableSchema) -> dict[str, str]:
    ids = {column.source_name: column.id for column in schema.columns}
    return {name: ids.get(name, "") for name in names}
