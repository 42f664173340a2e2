"""The schemas that the rows of a feed are decoded with. Pure: the feed contains them in schema records only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.column_mapping import (
    declared_converter,
    map_columns,
    mapped_images,
    source_columns,
)
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.ydb.types import converter, logical_type, source_type
from airflow_cdc_provider.core.table.schema import Column, TableSchema


class FeedTables:
    """One RowImages per table; each schema is announced once."""

    def __init__(self, settings: DecoderSettings) -> None:
        self._settings = settings
        self._images: dict[str, RowImages] = {}
        self._announced: set[str] = set()

    def has_schema(self, table: str) -> bool:
        """False if the schema is to be guessed from the rows."""
        return not self._settings.guess or self._settings.schema(table) is not None

    def images(self, table: str) -> RowImages:
        """Raises DecodeError if the schema is unknown: records do not contain the names of key columns."""
        images = self._images.get(table)
        if images is None:
            schema = self._settings.schema(table)
            if schema is None or not schema.key:
                raise DecodeError(NO_SCHEMA, f"the columns of {table or 'the table'} are unknown")
            warnings: list[str] = []
            rule = self._settings.rule(table)
            columns = source_columns(rule, schema.columns, source_type)
            converter_of = declared_converter(rule, source_type, lambda column: converter(column, warnings.append))
            mappings = map_columns(rule, columns, schema.key, converter_of, warnings)
            images = mapped_images(self._settings, schema, mappings, warnings)
            self._images[table] = images
        return images

    def declared(self, schema: TableSchema) -> TableSchema:
        """The declared schema, if ``schema`` differs from it in the order of its columns at most."""
        known = self._settings.schema(schema.table)
        return known if known is not None and _content(known) == _content(schema) else schema

    def announce(self, schema: TableSchema) -> list[TableSchema]:
        """The schema, the first time; nothing later."""
        if schema.schema_id in self._announced:
            return []
        self._announced.add(schema.schema_id)
        return [schema]


def _content(schema: TableSchema) -> object:
    columns = {column.name: (column.type, column.nullable, column.native) for column in schema.columns}
    return columns, schema.key, schema.regime


def feed_schema(table: str, definition: Mapping[str, Any]) -> TableSchema:
    """``definition``: the ``table`` of a schema record. Raises DecodeError for what YDB's own reader refuses, too.

    Columns are in the order of their names: that of the members of an object means nothing, so two records of one
    schema have one id. Early versions wrote types and single keys as strings."""
    version, columns = definition.get("schemaVersion"), as_row(definition.get("columns"), "the columns")
    if type(version) is not int or version < 1:
        raise DecodeError(WRONG_VALUE, "a schema record without a schemaVersion from 1 on")
    key = definition.get("primaryKeyColumnNames")
    names = [key] if isinstance(key, str) else key
    if not isinstance(names, list) or not names:
        raise DecodeError(WRONG_VALUE, "a schema record without key columns")
    if not all(isinstance(name, str) and name in columns for name in names) or len(set(names)) != len(names):
        raise DecodeError(WRONG_VALUE, "a schema record whose key columns are not among its columns, each once")
    return TableSchema(table, tuple(_column(name, columns[name]) for name in sorted(columns)), tuple(names))


def _column(name: str, definition: Any) -> Column:
    native = definition.get("type") if isinstance(definition, dict) else definition
    if not name or not isinstance(native, str) or not native:
        raise DecodeError(WRONG_VALUE, "a column without a name or a type")
    return Column(name, logical_type(native), True, native)
