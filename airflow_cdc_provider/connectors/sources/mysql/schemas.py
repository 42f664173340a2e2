"""The schema of a table at a position of the binlog. Pure.

With ``binlog_row_metadata = FULL`` the binlog contains names, signs, character sets and the key of a table, else only
types. The catalog has everything, but only as of now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.mysql_statements.tokens import tokenize
from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable
from airflow_cdc_provider.connectors.sources.mysql.column_types import column_type
from airflow_cdc_provider.connectors.sources.mysql.column_types import keeps_values as type_keeps_values
from airflow_cdc_provider.connectors.sources.mysql.table_map import Field, TableMap
from airflow_cdc_provider.connectors.sources.mysql.types import (
    CatalogColumn,
    column_from_field,
    keeps_values,
    matches_field,
)
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.selected_columns import selected_columns
from airflow_cdc_provider.core.table.column_ids import with_distinct_ids
from airflow_cdc_provider.core.table.copy_view import CopyView
from airflow_cdc_provider.core.table.schema import Column, TableSchema


class AmbiguousSchema(Exception):
    """The columns of a table cannot be determined. The message is the reason."""


@dataclass(frozen=True)
class BinlogSchema:
    """``described`` and ``fields`` are in the order of a row's cells. ``cell_indexes``: the cell of each column of the
    schema."""

    schema: TableSchema
    cell_indexes: tuple[int, ...]
    fields: tuple[Field, ...]
    described: tuple[CatalogColumn, ...]


def binlog_schema(
    table_map: TableMap, task: TableTask, table: CatalogTable | None, collations: Mapping[int, str], altered: bool
) -> BinlogSchema:
    """``altered``: the table was altered between this position and the read of the catalog. Raises AmbiguousSchema."""
    if table_map.has_names:
        described = _columns_by_name(table_map, table, collations)
    else:
        described = _columns_by_index(table_map, table, collations, altered)
    key = _key(table_map, described, task)
    known = with_distinct_ids([_known_column(one, task) for one in described if not one.generated])
    columns = selected_columns(task.rule, known, key)
    schema = TableSchema(task.table, columns, key, task.schema.regime)
    if schema.shape == task.schema.shape:
        schema = task.schema
    return BinlogSchema(schema, cell_indexes(schema, described), table_map.fields, described)


def cell_indexes(schema: TableSchema, described: Sequence[CatalogColumn]) -> tuple[int, ...]:
    """The index of each column of the schema among the cells of a row."""
    indexes = {column.name: index for index, column in enumerate(described)}
    return tuple(indexes[column.text_of or column.name] for column in schema.columns)


def charset_of(field: Field, collations: Mapping[int, str]) -> str | None:
    """None if the binlog does not contain it, empty if the collation is unknown."""
    return None if field.collation is None else collations.get(field.collation, "")


def _columns_by_name(
    table_map: TableMap, table: CatalogTable | None, collations: Mapping[int, str]
) -> tuple[CatalogColumn, ...]:
    catalog = {column.name: column for column in table.columns} if table else {}
    described = []
    for field in table_map.fields:
        charset = charset_of(field, collations)
        column = catalog.get(field.name)
        if column is None or not matches_field(field, column, charset):
            column = column_from_field(field, charset)
        if column is None:
            raise AmbiguousSchema(f"the binlog does not contain the type of column {field.name}")
        described.append(column)
    return tuple(described)


def _columns_by_index(
    table_map: TableMap, table: CatalogTable | None, collations: Mapping[int, str], altered: bool
) -> tuple[CatalogColumn, ...]:
    if table is None:
        raise AmbiguousSchema("the binlog has no column names, and the table does not exist any more")
    if altered:
        raise AmbiguousSchema("the binlog has no column names, and the table was altered later")
    if len(table.columns) != len(table_map.fields):
        raise AmbiguousSchema(
            f"the binlog has {len(table_map.fields)} columns without names, the table has {len(table.columns)}"
        )
    for field, column in zip(table_map.fields, table.columns, strict=True):
        if not matches_field(field, column, charset_of(field, collations)):
            raise AmbiguousSchema(f"the binlog has no column names, and a type that column {column.name} does not have")
    return table.columns


def _known_column(described: CatalogColumn, task: TableTask) -> Column:
    """The column as the target has it, if they differ in the native type only."""
    for schema in (task.schema, *(view.schema for view in task.views)):
        for column in schema.columns if schema else ():
            if column.name == described.name and column.type == described.column.type:
                return column
    return described.column


def _key(table_map: TableMap, described: tuple[CatalogColumn, ...], task: TableTask) -> tuple[str, ...]:
    """The primary key, if the binlog contains it and the definition names no other. A table with another unique key in
    the schema has no primary key, or one with generated columns."""
    key = [described[index] for index in table_map.key or ()]
    names = tuple(column.name for column in key)
    if not names or any(column.generated for column in key) or task.rule.key or set(names) == set(task.schema.key):
        return task.schema.key
    return names


def columns_with_unknown_defaults(task: TableTask, found: BinlogSchema) -> tuple[str, ...]:
    """Columns that a copy lacks and that may not be NULL in its rows: only a new copy has their values."""
    described = {column.name: column for column in found.described}
    defaults = [name for name in found.schema.names if name in described and described[name].default]
    return tuple(name for name in defaults if any(view.lacks(name) for view in task.views))


def columns_maybe_rewritten(view: CopyView, found: BinlogSchema) -> tuple[str, ...]:
    """Columns whose values in a copy the server may have changed, without row events, when they were altered.

    The catalog may be newer than an ALTER that the stream has not reached yet. The target takes over its types with
    this row, so the later window sees no change of type in that ALTER: it must be detected now."""
    natives = {column.name: column.native for column in view.schema.columns} if view.schema else {}
    taken_over = natives | {column.name: column.native for column in found.schema.columns}
    return tuple(
        column.name
        for column in found.described
        if (native := natives.get(column.name)) is not None
        and not (keeps_values(native, column) and _type_keeps_values(native, taken_over[column.name]))
    )


def _type_keeps_values(before: str, after: str) -> bool:
    return before == after or type_keeps_values(column_type(tokenize(before)), column_type(tokenize(after)))
