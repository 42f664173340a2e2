"""Which schema a table had at a place of the binlog. Pure.

The binlog may tell names, signs, character sets and the key of a table (``binlog_row_metadata = FULL``); else only
types. The catalogue tells all, but as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable
from airflow_cdc_provider.connectors.sources.mysql.column_types import column_type
from airflow_cdc_provider.connectors.sources.mysql.column_types import keeps_values as type_keeps_values
from airflow_cdc_provider.connectors.sources.mysql.table_map import Field, TableMap
from airflow_cdc_provider.connectors.sources.mysql.tokens import tokens_of
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn, derived, fits, keeps_values
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.selection import selected_columns
from airflow_cdc_provider.core.table.schema import Column, LogicalType, TableSchema


class UnclearSchema(Exception):
    """Nobody can tell for certain what the columns of a table were. Says why."""


@dataclass(frozen=True)
class BinlogSchema:
    """``described`` and ``fields`` are in the order of a row's cells; ``places``: where in it each column of the schema
    is."""

    schema: TableSchema
    places: tuple[int, ...]
    fields: tuple[Field, ...]
    described: tuple[CatalogColumn, ...]


def binlog_schema(
    found: TableMap, task: TableTask, table: CatalogTable | None, collations: Mapping[int, str], altered: bool
) -> BinlogSchema:
    """``altered``: the table was altered between this place and the moment when the catalogue was read. Raises
    Undecided."""
    described = _by_name(found, table, collations) if found.is_named else _by_place(found, table, collations, altered)
    key = _key(found, described, task)
    columns = selected_columns(task.rule, [_known(one, task) for one in described if not one.generated], key)
    schema = TableSchema(task.table, columns, key, task.schema.regime)
    if shape(schema) == shape(task.schema):
        schema = task.schema
    return BinlogSchema(schema, places_of(schema, described), found.fields, described)


def places_of(schema: TableSchema, described: Sequence[CatalogColumn]) -> tuple[int, ...]:
    """Where among the cells of a row each column of the schema is told."""
    order = {one.name: at for at, one in enumerate(described)}
    return tuple(order[column.text_of or column.name] for column in schema.columns)


def shape(schema: TableSchema) -> tuple[dict[str, LogicalType], tuple[str, ...]]:
    """What makes two schemas the same to a stream: names and types of the columns, and the key."""
    return {column.name: column.type for column in schema.columns}, schema.key


def charset_of(field: Field, collations: Mapping[int, str]) -> str | None:
    """None where the binlog does not tell it, empty where nobody knows the collation."""
    return None if field.collation is None else collations.get(field.collation, "")


def _by_name(found: TableMap, table: CatalogTable | None, collations: Mapping[int, str]) -> tuple[CatalogColumn, ...]:
    known = {one.name: one for one in table.columns} if table else {}
    described = []
    for field in found.fields:
        charset = charset_of(field, collations)
        one = known.get(field.name)
        if one is None or not fits(field, one, charset):
            one = derived(field, charset)
        if one is None:
            raise UnclearSchema(f"the binlog does not tell what column {field.name} was")
        described.append(one)
    return tuple(described)


def _by_place(
    found: TableMap, table: CatalogTable | None, collations: Mapping[int, str], altered: bool
) -> tuple[CatalogColumn, ...]:
    if table is None:
        raise UnclearSchema("the binlog tells no names of columns, and the table is gone")
    if altered:
        raise UnclearSchema("the binlog tells no names of columns, and the table was altered later")
    if len(table.columns) != len(found.fields):
        raise UnclearSchema(
            f"the binlog tells {len(found.fields)} columns without names, the table has {len(table.columns)}"
        )
    for field, one in zip(found.fields, table.columns, strict=True):
        charset = charset_of(field, collations)
        if not fits(field, one, charset):
            raise UnclearSchema(f"the binlog tells no names of columns, and another type than that of {one.name}")
    return table.columns


def _known(one: CatalogColumn, task: TableTask) -> Column:
    """As the target holds it, where nothing but its description is another one."""
    held = task.control.schema if task.control and task.control.schema else None
    for schema in (task.schema, held):
        for column in schema.columns if schema else ():
            if column.name == one.name and column.type == one.column.type:
                return column
    return one.column


def _key(found: TableMap, described: tuple[CatalogColumn, ...], task: TableTask) -> tuple[str, ...]:
    """The primary key, where the binlog tells it and the definition names no other. A table that is known by another
    unique key has no primary one."""
    names = tuple(described[at].name for at in found.key or ())
    if not names or task.rule.key or set(names) == set(task.schema.key):
        return task.schema.key
    return names


def unclear_columns(task: TableTask, told: BinlogSchema) -> tuple[str, ...]:
    """Columns the target lacks and whose value in its rows nobody can tell but by reading them again."""
    held = task.control.schema if task.control else None
    if held is None:
        return ()
    described = {one.name: one for one in told.described}
    return tuple(name for name in told.schema.names if name not in held.names and described[name].default)


def value_losses(task: TableTask, told: BinlogSchema) -> tuple[str, ...]:
    """Columns of which the server may have changed values when they were altered: no row tells of that. Where the
    catalogue is that of behind an ALTER that the stream has yet to tell, its types are those that the target takes over
    with this row: an ALTER that they come from changes nothing any more in the eyes of the window that tells it."""
    held = task.control.schema if task.control else None
    natives = {column.name: column.native for column in held.columns} if held else {}
    taken_over = natives | {column.name: column.native for column in told.schema.columns}
    return tuple(
        one.name
        for one in told.described
        if (native := natives.get(one.name)) is not None
        and not (keeps_values(native, one) and _keeps(native, taken_over[one.name]))
    )


def _keeps(before: str, after: str) -> bool:
    return before == after or type_keeps_values(column_type(tokens_of(before)), column_type(tokens_of(after)))
