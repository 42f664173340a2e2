"""The schema that a feed's rows are read with. Pure: the feed itself tells it in schema records only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.common.wanted_columns import as_described, readings
from airflow_cdc_provider.connectors.decoders.ydb.types import converter, logical_type
from airflow_cdc_provider.core.spec.selection import selects
from airflow_cdc_provider.core.table.schema import Column, TableSchema


class FeedTables:
    """Images per table, each schema announced once."""

    def __init__(self, setting: DecoderSettings) -> None:
        self._setting = setting
        self._made: dict[str, RowImages] = {}
        self._announced: set[str] = set()

    def knows(self, table: str) -> bool:
        """False where all that can be said of a row is how it looks."""
        return not self._setting.guess or self._setting.known(table) is not None

    def images(self, table: str) -> RowImages:
        """Raises DecodeError where nobody knows the table: names of key columns are in no record."""
        made = self._made.get(table)
        if made is None:
            schema = self._setting.known(table)
            if schema is None or not schema.key:
                raise DecodeError(NO_SCHEMA, f"the columns of {table or 'the table'} are not known")
            warnings: list[str] = []
            rule = self._setting.rule(table)
            columns = as_described(rule, schema.columns, lambda c: logical_type(c.native) if c.native else None)
            made_of = readings(rule, columns, schema.key, lambda c: converter(c, warnings.append), warnings)
            left_out = (lambda name: False) if rule is None else (lambda name: not selects(rule, name))
            converts, as_told = [one.convert for one in made_of], all(one.as_told for one in made_of)
            made = self._made[table] = RowImages(schema, converts, left_out, warnings, as_told)
        return made

    def announced(self, schema: TableSchema) -> list[TableSchema]:
        if schema.schema_id in self._announced:
            return []
        self._announced.add(schema.schema_id)
        return [schema]


def feed_schema(table: str, told: Mapping[str, Any]) -> TableSchema:
    """The ``table`` of a schema record. Early builds wrote types as texts, and a key of one column as a text."""
    columns = as_row(told.get("columns"), "the columns")
    key = told.get("primaryKeyColumnNames")
    names = [key] if isinstance(key, str) else key
    if not isinstance(names, list) or not all(isinstance(name, str) and name in columns for name in names):
        raise DecodeError(WRONG_VALUE, "a schema whose key is none of its columns")
    return TableSchema(table, tuple(_column(name, one) for name, one in columns.items()), tuple(names))


def _column(name: str, told: Any) -> Column:
    native = told.get("type") if isinstance(told, dict) else told
    if not isinstance(native, str):
        raise DecodeError(WRONG_VALUE, "a column without a type")
    return Column(name, logical_type(native), True, native)
