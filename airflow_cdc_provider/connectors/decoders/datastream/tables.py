"""The schema that rows of a table are read with: that of the Avro file, else one that somebody described. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.avro_file import field_of
from airflow_cdc_provider.connectors.decoders.common.avro_names import resolved
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_KEY, NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.common.wanted_columns import ColumnReading, as_described, readings
from airflow_cdc_provider.connectors.decoders.datastream.types import column_of, converter, original_type
from airflow_cdc_provider.core.spec.selection import selects
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema

DOCUMENT = (
    Column("_id", LogicalType(Kind.TEXT), False, "extended JSON"),
    Column("data", LogicalType(Kind.JSON), True, "extended JSON"),
)
"""What the payload of MongoDB's events is."""


class DatastreamTables:
    """Images per table, key and file schema; each schema announced once."""

    def __init__(self, setting: DecoderSettings) -> None:
        self._setting = setting
        self._made: dict[tuple[str, str, str, tuple[str, ...]], RowImages] = {}
        self._announced: set[str] = set()

    def images(self, source: str, table: str, key: tuple[str, ...], avro: Any, text: str) -> RowImages:
        """``avro``: the schema of the file's records, and ``text``, which stands for it; None for lines of JSON."""
        names = (source, table, text, key)
        made = self._made.get(names)
        if made is None:
            warnings: list[str] = []
            schema, made_of = self._schema(source, table, key, avro, warnings)
            missing = [name for name in schema.key if name not in schema.names]
            if missing:
                raise DecodeError(NO_KEY, f"the key column {missing[0]} is no column of {table}")
            converts, as_told = [one.convert for one in made_of], all(one.as_told for one in made_of)
            left_out = partial(self._left_out, table)
            made = self._made[names] = RowImages(schema, converts, left_out, warnings, as_told)
        return made

    def announced(self, images: RowImages) -> list[TableSchema]:
        if images.schema_id in self._announced:
            return []
        self._announced.add(images.schema_id)
        return [images.schema]

    def _schema(
        self, source: str, table: str, key: tuple[str, ...], avro: Any, warnings: list[str]
    ) -> tuple[TableSchema, list[ColumnReading]]:
        known, rule = self._setting.known(table), self._setting.rule(table)

        def read(columns: Sequence[Column], of_key: Sequence[str]) -> list[ColumnReading]:
            return readings(rule, columns, of_key, lambda column: converter(column, warnings.append), warnings)

        if source == "mongodb" and known is None:
            return TableSchema(table, DOCUMENT, ("_id",), Regime.UNORDERED), read(DOCUMENT, ("_id",))
        payload = None if avro is None else field_of(resolved(avro), "payload")
        if not isinstance(payload, dict) or not isinstance(payload.get("fields"), list):
            if known is None:
                raise DecodeError(NO_SCHEMA, f"the columns of {table} are not known")
            schema = replace(known, key=known.key or key, regime=Regime.UNORDERED)
            return schema, read(as_described(rule, known.columns, original_type), schema.key)
        fields = [column_of(field) for field in payload["fields"] if not self._left_out(table, field["name"])]
        in_force = known.key if known and known.key else key
        made_of = read(fields, in_force)
        schema = TableSchema(table, tuple(one.column for one in made_of), in_force, Regime.UNORDERED)
        return (known if known and _shape(known) == _shape(schema) else schema), made_of

    def _left_out(self, table: str, name: str) -> bool:
        rule = self._setting.rule(table)
        return rule is not None and not selects(rule, name)


def _shape(schema: TableSchema) -> tuple[object, ...]:
    return {column.name: (column.type, column.native) for column in schema.columns}, schema.key, schema.regime
