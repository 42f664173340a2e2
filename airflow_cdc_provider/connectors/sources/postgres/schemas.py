"""Determines the schema of a table at a position of the stream. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.sources.postgres.messages import Attribute, Relation
from airflow_cdc_provider.connectors.sources.postgres.types import Domains, logical_type
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.selected_columns import selected_columns
from airflow_cdc_provider.core.table.schema import Column, TableSchema


@dataclass(frozen=True)
class CatalogTable:
    """The current entry of a table in the catalog. ``schema`` leaves generated columns out. ``unknown_initial``:
    columns whose value in rows older than the column is not in the catalog. ``generated_key``: the key that the table
    would have with generated columns. ``limited``: the login may select only the columns that are not ``hidden``."""

    oid: int
    namespace: str
    name: str
    schema: TableSchema
    generated: frozenset[str] = frozenset()
    unknown_initial: frozenset[str] = frozenset()
    generated_key: tuple[str, ...] = ()
    limited: bool = False
    hidden: frozenset[str] = frozenset()

    def may_send(self, column: str, copied: Collection[str]) -> bool:
        """Whether the stream may be read for a column of this name, which the table may not have any more."""
        if column in self.generated or column in self.hidden:
            return False
        return not self.limited or column in (*self.schema.names, *copied)


@dataclass(frozen=True)
class Catalog:
    tables: Mapping[str, CatalogTable]
    domains: Domains


def stream_schema(relation: Relation, task: TableTask, catalog: Catalog) -> TableSchema:
    """The schema of a relation message, completed from the catalog. The task's own schema if it has the same shape.

    If the replica identity no longer covers the key, the key does not identify changed rows: the schema then has the
    columns of the replica identity as its key, and the schema change stops this table alone.
    """
    table = catalog.tables.get(task.name_in_source)
    known = [schema for schema in (table and table.schema, task.schema) if schema]
    known += [view.schema for view in task.views if view.schema]
    copied = {name for view in task.views if view.schema for name in view.schema.names}
    columns = [
        _column(attribute, known, catalog.domains)
        for attribute in relation.attributes
        if table is None or table.may_send(attribute.name, copied)
    ]
    key = _key(relation, task)
    schema = TableSchema(task.table, selected_columns(task.rule, columns, key), key, task.schema.regime)
    return task.schema if schema.shape == task.schema.shape else schema


def has_unknown_initial(schema: TableSchema, task: TableTask, catalog: Catalog) -> bool:
    """Whether a copy lacks columns whose values in its rows can only be read from the source table."""
    table = catalog.tables.get(task.name_in_source)
    if table is None:
        return False
    unknown = {*table.unknown_initial, *task.rule.columns.as_text} & set(schema.names)
    return any(view.lacks(name) for view in task.views for name in unknown)


def _column(attribute: Attribute, known: list[TableSchema], domains: Domains) -> Column:
    """Without an id if the name may belong to two columns: one of the copy, and one of the catalog as of now."""
    kind = logical_type(attribute.type_oid, attribute.typmod, domains)
    named = [column for schema in known for column in schema.columns if column.name == attribute.name]
    ids = {column.id for column in named} - {""}
    found = next((column for column in named if column.type == kind), Column(attribute.name, kind))
    return replace(found, id=ids.pop() if len(ids) == 1 else "")


def _key(relation: Relation, task: TableTask) -> tuple[str, ...]:
    identity = {attribute.name for attribute in relation.attributes if attribute.identity}
    if identity.issuperset(task.schema.key):
        return task.schema.key
    return tuple(attribute.name for attribute in relation.attributes if attribute.identity)
