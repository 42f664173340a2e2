"""Ids for the columns of sources that have none: a column is known by its first name, and keeps it when it is renamed.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from airflow_cdc_provider.core.table.schema import Column, TableSchema


def with_distinct_ids(columns: Sequence[Column]) -> tuple[Column, ...]:
    """A column without an id gets one if its name is the id of another column, which had that name before."""
    ids = {column.id for column in columns if column.id}
    taken = ids | {column.name for column in columns}
    return tuple(
        replace(column, id=next_id(column.name, taken)) if not column.id and column.name in ids else column
        for column in columns
    )


def next_id(name: str, taken: set[str]) -> str:
    return next(candidate for number in count(2) if (candidate := f"{name}#{number}") not in taken)


def rename_columns(schema: TableSchema, names: Mapping[str, str]) -> TableSchema:
    """``names``: earlier → new name of each renamed column."""
    columns = tuple(
        replace(column, name=names[column.name], id=column.id or column.name) if column.name in names else column
        for column in with_distinct_ids(schema.columns)
    )
    return replace(schema, columns=columns, key=tuple(names.get(name, name) for name in schema.key))
