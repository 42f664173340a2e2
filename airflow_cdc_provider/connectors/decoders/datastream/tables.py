"""The schema that the rows of a table are decoded with: that of the Avro file, or else a declared one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.avro_file import field_of
from airflow_cdc_provider.connectors.decoders.common.avro_names import resolve_names
from airflow_cdc_provider.connectors.decoders.common.column_mapping import (
    ColumnMapping,
    declared_converter,
    map_columns,
    mapped_images,
    source_columns,
)
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.datastream.types import column_of, converter, source_type
from airflow_cdc_provider.connectors.decoders.datastream.values import EXTENDED
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema

DOCUMENT = (
    Column("_id", LogicalType(Kind.TEXT), False, EXTENDED),
    Column("data", LogicalType(Kind.JSON), True, EXTENDED),
)
"""The payload of MongoDB events."""


class DatastreamTables:
    """One RowImages per table, key and file schema; each schema is announced once."""

    def __init__(self, settings: DecoderSettings) -> None:
        self._settings = settings
        self._images: dict[tuple[str, str, str, tuple[str, ...]], RowImages] = {}
        self._announced: set[str] = set()

    def images(self, source: str, table: str, key: tuple[str, ...], avro: Any, text: str) -> RowImages:
        """``avro``: the schema of the records of the file, ``text``: its text; None and empty for lines of JSON."""
        cache_key = (source, table, text, key)
        images = self._images.get(cache_key)
        if images is None:
            warnings: list[str] = []
            schema, mappings = self._schema(source, table, key, avro, warnings)
            images = mapped_images(self._settings, schema, mappings, warnings)
            self._images[cache_key] = images
        return images

    def announce(self, images: RowImages) -> list[TableSchema]:
        """The schema, the first time; nothing later."""
        if images.schema_id in self._announced:
            return []
        self._announced.add(images.schema_id)
        return [images.schema]

    def _schema(
        self, source: str, table: str, key: tuple[str, ...], avro: Any, warnings: list[str]
    ) -> tuple[TableSchema, list[ColumnMapping]]:
        known, rule = self._settings.schema(table), self._settings.rule(table)

        def mappings(columns: Sequence[Column], key: Sequence[str], is_declared: bool = False) -> list[ColumnMapping]:
            converter_of = partial(converter, warn=warnings.append)
            of_declared = declared_converter(rule, source_type, converter_of) if is_declared else converter_of
            return map_columns(rule, columns, key, of_declared, warnings)

        if source == "mongodb" and known is None:
            return TableSchema(table, DOCUMENT, ("_id",), Regime.UNORDERED), mappings(DOCUMENT, ("_id",))
        payload = None if avro is None else field_of(resolve_names(avro), "payload")
        if not isinstance(payload, dict) or not isinstance(payload.get("fields"), list):
            if known is None:
                raise DecodeError(NO_SCHEMA, f"the columns of {table} are unknown")
            schema = replace(known, key=known.key or key, regime=Regime.UNORDERED)
            return schema, mappings(source_columns(rule, known.columns, source_type), schema.key, is_declared=True)
        columns = [column_of(field) for field in payload["fields"] if not self._settings.excludes(table, field["name"])]
        effective_key = known.key if known and known.key else key
        mapped = mappings(columns, effective_key)
        schema = TableSchema(table, tuple(mapping.column for mapping in mapped), effective_key, Regime.UNORDERED)
        return (known if known and _shape(known) == _shape(schema) else schema), mapped


def _shape(schema: TableSchema) -> tuple[object, ...]:
    return {column.name: (column.type, column.native) for column in schema.columns}, schema.key, schema.regime
