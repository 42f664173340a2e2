"""How the rows of a table become images: by the schema in the message, else by one that somebody described. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.column_texts import Quick
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_KEY, NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.common.values import only_text
from airflow_cdc_provider.connectors.decoders.common.wanted_columns import ColumnReading, as_described, readings
from airflow_cdc_provider.connectors.decoders.debezium import converters, semantics
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectValue
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import without_placeholder
from airflow_cdc_provider.connectors.decoders.debezium.schema_changes import unlogged_changes
from airflow_cdc_provider.connectors.decoders.debezium.semantics import Semantic
from airflow_cdc_provider.connectors.source import HoleFound
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.spec.selection import selects
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema

REGIMES: Mapping[str, Regime] = {"oracle": Regime.DOUBLE}
"""Oracle checks keys at the end of a statement: two rows may hold one meanwhile."""

WHOLE_BEFORE = frozenset({"mysql", "mariadb", "sqlserver", "mongodb"})
"""Connectors whose before images are whole; those of the others show NULL for what they do not know."""

ID, DOCUMENT = "_id", "document"
DOCUMENT_COLUMNS = (
    Column(ID, LogicalType(Kind.TEXT), False, "extended JSON"),
    Column(DOCUMENT, LogicalType(Kind.JSON), True, "extended JSON"),
)


@dataclass(frozen=True)
class TableLayout:
    """``quick``: in the order of the columns. ``other_key``: the key is not the one that the connector splits changes
    of, so an update may change it. ``unsure``: columns whose null in an update may be a value that was not sent."""

    table: str
    images: RowImages
    quick: tuple[Quick | None, ...]
    whole_before: bool
    other_key: bool
    key_names: frozenset[str]
    unsure: frozenset[str] = frozenset()

    @property
    def schema(self) -> TableSchema:
        return self.images.schema


class TableLayouts:
    """One layout per table, schema text and key; made once, each announced once."""

    def __init__(self, setting: DecoderSettings, full_before: bool) -> None:
        self._setting = setting
        self._full_before = full_before
        self._made: dict[tuple[str, str, tuple[str, ...], bool], TableLayout] = {}
        self._announced: set[str] = set()
        self._shown: dict[str, Sequence[Column]] = {}
        self._unlogged: dict[str, list[str]] = {}

    def of(
        self,
        table: str,
        connector: str,
        told: ConnectValue,
        key: Sequence[str],
        is_row: bool = False,
        anew: bool = False,
    ) -> TableLayout:
        """``told``: the message's value. ``key``: the names in its key. ``is_row``: the value is a row, no envelope.
        ``anew``: the message belongs to a full snapshot, which tells all older rows again. Raises DecodeError where
        nobody knows the columns."""
        names = (table, told.text, tuple(key), is_row)
        made = self._made.get(names)
        if made is None:
            made = self._made[names] = self._make(table, connector, told, tuple(key), is_row, anew)
        return made

    def announced(self, layout: TableLayout, order_key: str) -> list[TableSchema | HoleFound]:
        """The schema, the first time; before it, what it says of rows that no message tells."""
        items: list[TableSchema | HoleFound] = []
        if reasons := self._unlogged.pop(layout.table, []):
            items.append(HoleFound(layout.table, UNLOGGED, order_key, "; ".join(reasons)))
        if layout.images.schema_id not in self._announced:
            self._announced.add(layout.images.schema_id)
            items.append(layout.schema)
        return items

    def _make(
        self, table: str, connector: str, told: ConnectValue, key: tuple[str, ...], is_row: bool, anew: bool
    ) -> TableLayout:
        warnings: list[str] = []
        known, rule = self._setting.known(table), self._setting.rule(table)
        if connector == "mongodb" and not is_row:
            schema = TableSchema(table, DOCUMENT_COLUMNS, (ID,))
            images = RowImages(schema, [only_text, only_text], warnings=warnings)
            return TableLayout(table, images, (None, None), True, False, frozenset(schema.key))
        if told.schema is None:
            if known is None:
                raise DecodeError(NO_SCHEMA, f"no schema in the message, and none is known of {table}")
            columns = as_described(rule, known.columns, _meant)
            made = readings(rule, columns, known.key, lambda c: converters.of_column(c, warnings.append), warnings)
            schema = known
        else:
            row = fields_of(told.schema) if is_row else row_fields(told.schema)
            fields = [
                (field["field"], semantics.of_field(field), field.get("optional", True) is not False) for field in row
            ]
            kept = [one for one in fields if not self._left_out(table, one[0])]
            columns = [Column(name, semantics.logical_type(s), may, str(s)) for name, s, may in kept]
            self._judge(table, columns, {one["field"] for one in row if "default" in one}, anew)
            in_force = known.key if known else key
            made = readings(rule, columns, in_force, lambda c: converters.of_column(c, warnings.append), warnings)
            wanted = tuple(one.column for one in made)
            schema = TableSchema(table, wanted, in_force, REGIMES.get(connector, Regime.SINGLE))
            if known and shape(known) == shape(schema) and not any(unlogged_changes(known.columns, columns)):
                schema = known
        if Regime.DOUBLE in (REGIMES.get(connector), known.regime if known else None):
            schema = replace(schema, regime=Regime.DOUBLE)
        missing = [name for name in schema.key if name not in schema.names]
        if missing:
            raise DecodeError(NO_KEY, f"the key column {missing[0]} is no column of {table}")
        converts, as_told = [one.convert for one in made], all(one.as_told for one in made)
        images = RowImages(schema, converts, lambda name: self._left_out(table, name), warnings, as_told)
        meanings = {column.name: converters.semantic_of_column(column) for column in columns}
        whole = connector in WHOLE_BEFORE or self._full_before or not schema.key
        names = frozenset(schema.key)
        quick = tuple(_quick(one, meanings) for one in made)
        unsure = frozenset[str]()
        if connector == "postgresql" and not whole:
            unsure = frozenset(name for name, meaning in meanings.items() if without_placeholder(meaning))
        return TableLayout(table, images, quick, whole, bool(key) and names != set(key), names, unsure)

    def _judge(self, table: str, columns: Sequence[Column], defaults: Collection[str], anew: bool) -> None:
        """Beside the columns that were shown last, or those of the copy."""
        held = self._setting.held(table)
        if held is not None and not anew:
            found = unlogged_changes(self._shown.get(table, held.columns), columns, defaults)
            self._unlogged.setdefault(table, []).extend(found)
        self._shown[table] = columns

    def _left_out(self, table: str, name: str) -> bool:
        rule = self._setting.rule(table)
        return rule is not None and not selects(rule, name)


def _quick(one: ColumnReading, meanings: Mapping[str, Semantic | None]) -> Quick | None:
    meaning = meanings[one.column.name] if one.as_told else None
    return None if meaning is None else converters.quick_of(meaning)


def _meant(column: Column) -> LogicalType | None:
    semantic = semantics.of_native(column.native)
    return None if semantic is None else semantics.logical_type(semantic)


def shape(schema: TableSchema) -> tuple[dict[str, LogicalType], tuple[str, ...]]:
    return {column.name: column.type for column in schema.columns}, schema.key


def row_fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns that the schema of an envelope tells."""
    for field in fields_of(schema):
        if field["field"] in ("after", "before"):
            return fields_of(field)
    raise DecodeError(NO_SCHEMA, "the embedded schema has no row")


def fields_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(f, dict) and isinstance(f.get("field"), str) for f in fields):
        raise DecodeError(NO_SCHEMA, "the embedded schema has no fields")
    if len({field["field"] for field in fields}) != len(fields):
        raise DecodeError(NO_SCHEMA, "the embedded schema names a field twice")
    return fields
