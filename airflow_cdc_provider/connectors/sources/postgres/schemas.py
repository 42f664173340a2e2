"""Which schema a table had at a place of the stream. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.postgres.messages import Attribute, Relation
from airflow_cdc_provider.connectors.sources.postgres.types import Domains, logical_type
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.selection import selected_columns
from airflow_cdc_provider.core.table.schema import Column, LogicalType, TableSchema


@dataclass(frozen=True)
class CatalogColumn:
    """A table in the catalogue, as it is now. ``schema`` leaves generated columns out. ``unclear`` are columns whose
    value in rows older than the column the catalogue does not tell."""

    oid: int
    namespace: str
    name: str
    schema: TableSchema
    generated: frozenset[str] = frozenset()
    unclear: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Catalogue:
    tables: Mapping[str, CatalogColumn]
    domains: Domains


def stream_schema(relation: Relation, task: TableTask, catalogue: Catalogue) -> TableSchema:
    """What the stream says, completed from the catalogue. The task's own schema where it has the same shape.

    Where the identity no longer covers the key, changed rows cannot be named by it: the schema then shows the key that
    the stream does give, and the change of key stops the table, and only it.
    """
    described = catalogue.tables.get(relation.table)
    known = [schema for schema in (described and described.schema, task.schema) if schema]
    if task.control and task.control.schema:
        known.append(task.control.schema)
    columns = [
        _column(attribute, known, catalogue.domains)
        for attribute in relation.attributes
        if not (described and attribute.name in described.generated)
    ]
    key = _key(relation, task)
    schema = TableSchema(task.table, selected_columns(task.rule, columns, key), key, task.schema.regime)
    return task.schema if shape(schema) == shape(task.schema) else schema


def shape(schema: TableSchema) -> tuple[dict[str, LogicalType], tuple[str, ...]]:
    """What makes two schemas the same to a stream: names and types of the columns, and the key."""
    return {column.name: column.type for column in schema.columns}, schema.key


def unclear_columns(schema: TableSchema, task: TableTask, catalogue: Catalogue) -> tuple[str, ...]:
    """Columns the target lacks and whose value in its rows nobody can tell but by reading them again."""
    described = catalogue.tables.get(schema.table)
    held = task.control.schema if task.control else None
    if described is None or held is None:
        return ()
    unclear = {*described.unclear, *task.rule.columns.cast}
    return tuple(name for name in schema.names if name in unclear and name not in held.names)


def _column(attribute: Attribute, known: list[TableSchema], domains: Domains) -> Column:
    kind = logical_type(attribute.type_oid, attribute.typmod, domains)
    for schema in known:
        for column in schema.columns:
            if column.name == attribute.name and column.type == kind:
                return column
    return Column(attribute.name, kind)


def _key(relation: Relation, task: TableTask) -> tuple[str, ...]:
    identity = {attribute.name for attribute in relation.attributes if attribute.identity}
    if identity.issuperset(task.schema.key):
        return task.schema.key
    return tuple(attribute.name for attribute in relation.attributes if attribute.identity)
