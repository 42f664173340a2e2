"""How the rows of a table become images: by the schema in the message, or else by a declared one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.column_mapping import (
    ColumnMapping,
    declared_converter,
    map_columns,
    mapped_images,
    source_columns,
)
from airflow_cdc_provider.connectors.decoders.common.column_texts import ArrowConverter
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.common.values import only_text
from airflow_cdc_provider.connectors.decoders.debezium import semantics
from airflow_cdc_provider.connectors.decoders.debezium.column_identities import (
    ColumnIdentities,
    present_key,
    with_ids_of,
)
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectValue
from airflow_cdc_provider.connectors.decoders.debezium.converters import arrow_converter, column_semantic, converter
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import has_no_placeholder
from airflow_cdc_provider.connectors.decoders.debezium.schema_changes import unlogged_changes
from airflow_cdc_provider.connectors.decoders.debezium.semantics import Semantic
from airflow_cdc_provider.connectors.decoders.debezium.table_history import TableHistory
from airflow_cdc_provider.connectors.source import HoleFound
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema

REGIMES: Mapping[str, Regime] = {"oracle": Regime.DOUBLE}
"""Oracle checks keys at the end of a statement: until then, two rows may have the same key."""

FULL_BEFORE = frozenset({"mysql", "mariadb", "mongodb"})
"""Connectors with complete before images. Those of others have the columns of the message key."""

MAY_OMIT_VALUES = frozenset({"postgresql", ""})
"""Connectors that may send null for a large value that an update does not change. Rows without envelope, which do not
name theirs, may be of one."""

SQL_SERVER = "sqlserver"
"""Its change tables have NULL for a large value that an update does not change, and for text, ntext and image before
every change. The connector sends these as null; from version 3.6 on it has a placeholder for some of them."""

ID, DOCUMENT = "_id", "document"
DOCUMENT_COLUMNS = (
    Column(ID, LogicalType(Kind.TEXT), False, "extended JSON"),
    Column(DOCUMENT, LogicalType(Kind.JSON), True, "extended JSON"),
)


@dataclass(frozen=True)
class TableLayout:
    """``arrow_converters``: in the order of the columns. ``key_differs``: from the message key, so that an update may
    change it. ``ambiguous_nulls``: columns whose null in an update may mean that the value was not sent.
    ``unknown_before``: columns that a before image does not have, whatever it says: the connector sends null, or the
    empty value of a type that cannot be null. ``unsure_before``: columns whose null in a before image may stand for an
    unknown value. ``unsure_after``: those whose null after an update means an unknown value if the value before is
    unknown, too."""

    table: str
    images: RowImages
    arrow_converters: tuple[ArrowConverter | None, ...]
    key_differs: bool
    key_names: frozenset[str]
    ambiguous_nulls: frozenset[str] = frozenset()
    unknown_before: frozenset[str] = frozenset()
    unsure_before: frozenset[str] = frozenset()
    unsure_after: frozenset[str] = frozenset()

    @property
    def schema(self) -> TableSchema:
        return self.images.schema

    def known_before(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The columns of a before image whose values are known."""
        if not self.unknown_before and not self.unsure_before:
            return row
        return {
            name: value
            for name, value in row.items()
            if name not in self.unknown_before and (value is not None or name not in self.unsure_before)
        }


class TableLayouts:
    """One layout per table, schema text and key; each schema is announced once."""

    def __init__(
        self, settings: DecoderSettings, options: DebeziumOptions, histories: Callable[[], Sequence[TableHistory]]
    ) -> None:
        self._settings = settings
        self._full_before = options.full_before
        self._binaries = options.binaries
        self._layouts: dict[tuple[str, str, tuple[str, ...], bool], TableLayout] = {}
        self._announced: set[str] = set()
        self._last_columns: dict[str, Sequence[Column]] = {}
        self._unlogged: dict[str, list[str]] = {}
        self._identities = ColumnIdentities(settings, histories)

    def get(
        self,
        table: str,
        connector: str,
        value: ConnectValue,
        key: Sequence[str],
        is_row: bool = False,
        in_snapshot: bool = False,
    ) -> TableLayout:
        """``key``: the column names in the message key. ``is_row``: the value is a row, not an envelope.
        ``in_snapshot``: the message belongs to a full snapshot, which contains all existing rows. Raises DecodeError if
        the columns are unknown."""
        cache_key = (table, value.text, tuple(key), is_row)
        layout = self._layouts.get(cache_key)
        if layout is None:
            layout = self._create(table, connector, value, tuple(key), is_row, in_snapshot)
            self._layouts[cache_key] = layout
        return layout

    def announce(self, layout: TableLayout, order_key: str) -> list[TableSchema | HoleFound]:
        """The schema, the first time, preceded by a hole if it shows unlogged changes."""
        items: list[TableSchema | HoleFound] = []
        if reasons := self._unlogged.pop(layout.table, []):
            items.append(HoleFound(layout.table, UNLOGGED, order_key, "; ".join(reasons)))
        if layout.images.schema_id not in self._announced:
            self._announced.add(layout.images.schema_id)
            items.append(layout.schema)
        return items

    def _create(
        self, table: str, connector: str, value: ConnectValue, key: tuple[str, ...], is_row: bool, in_snapshot: bool
    ) -> TableLayout:
        warnings: list[str] = []
        known, rule = self._settings.schema(table), self._settings.rule(table)
        if connector == "mongodb" and not is_row:
            schema = TableSchema(table, DOCUMENT_COLUMNS, (ID,))
            images = RowImages(schema, [only_text, only_text], warnings=warnings)
            return TableLayout(table, images, (None, None), False, frozenset(schema.key))
        if value.schema is None:
            if known is None:
                raise DecodeError(NO_SCHEMA, f"the message has no schema, and the schema of {table} is unknown")
            columns = source_columns(rule, known.columns, _logical_type)
            converter_of = declared_converter(
                rule, _logical_type, lambda column: converter(column, warnings.append, self._binaries)
            )
            mappings = map_columns(rule, columns, known.key, converter_of, warnings)
            schema = known
        else:
            fields = fields_of(value.schema) if is_row else row_fields(value.schema)
            all_columns = [_column(field) for field in fields]
            columns = [column for column in all_columns if not self._settings.excludes(table, column.name)]
            defaults = {field["field"] for field in fields if "default" in field}
            columns = self._identified(table, columns, defaults, in_snapshot)
            effective_key = present_key(known.key, columns) if known else key
            mappings = map_columns(rule, columns, effective_key, lambda c: converter(c, warnings.append), warnings)
            target_columns = tuple(mapping.column for mapping in mappings)
            schema = TableSchema(table, target_columns, effective_key, REGIMES.get(connector, Regime.SINGLE))
            if known and known.shape == schema.shape and not any(unlogged_changes(known.columns, columns)):
                schema = with_ids_of(known, schema)
        if Regime.DOUBLE in (REGIMES.get(connector), known.regime if known else None):
            schema = replace(schema, regime=Regime.DOUBLE)
        images = mapped_images(self._settings, schema, mappings, warnings)
        column_semantics = {column.name: column_semantic(column) for column in columns}
        key_names = frozenset(schema.key)
        others = [column for column in columns if column.name not in key_names]
        ambiguous_nulls = unknown_before = unsure_before = unsure_after = frozenset[str]()
        if connector == SQL_SERVER and not self._full_before:
            unsure_before = unsure_after = frozenset(
                column.name for column in others if _may_be_large(column, column_semantics[column.name])
            )
        elif schema.key and not self._full_before and connector not in FULL_BEFORE:
            if key:
                unknown_before = frozenset(column.name for column in columns) - frozenset(key)
            else:
                unsure_before = frozenset(column.name for column in others)
            if connector in MAY_OMIT_VALUES:
                nullable = (column.name for column in columns if column.nullable)
                ambiguous_nulls = frozenset(name for name in nullable if has_no_placeholder(column_semantics[name]))
        return TableLayout(
            table,
            images,
            tuple(_arrow_converter(mapping, column_semantics) for mapping in mappings),
            bool(key) and key_names != set(key),
            key_names,
            ambiguous_nulls,
            unknown_before,
            unsure_before,
            unsure_after,
        )

    def _identified(
        self, table: str, columns: list[Column], defaults: Collection[str], in_snapshot: bool
    ) -> list[Column]:
        """With the ids of the columns of the copy, which is empty first and has the columns of the first messages.
        Finds unlogged changes since the previous messages, or else since the copy."""
        copy_schema = self._settings.copy_schema(table)
        start = copy_schema or self._settings.schema(table)
        if start is not None and not in_snapshot:
            columns, uncopied = self._identities.identified(start, columns)
            last = self._last_columns.get(table)
            in_order = copy_schema is not None or last is not None
            changes = unlogged_changes(last or start.columns, columns, defaults, in_order)
            self._unlogged.setdefault(table, []).extend((*changes, *uncopied))
        self._last_columns[table] = columns
        return columns


def _column(field: Mapping[str, Any]) -> Column:
    semantic = semantics.from_field(field)
    nullable = field.get("optional", True) is not False
    return Column(field["field"], semantics.logical_type(semantic), nullable, str(semantic))


def _may_be_large(column: Column, semantic: Semantic | None) -> bool:
    """Messages do not tell ``varchar(max)`` from a short ``varchar``."""
    if semantic is None:
        return column.type.kind in (Kind.TEXT, Kind.BYTES)
    return semantic.type in ("string", "bytes") and semantic.name in ("", f"{semantics.DATA}Xml")


def _arrow_converter(mapping: ColumnMapping, column_semantics: Mapping[str, Semantic | None]) -> ArrowConverter | None:
    semantic = column_semantics[mapping.column.name] if mapping.as_in_source else None
    return None if semantic is None else arrow_converter(semantic)


def _logical_type(column: Column) -> LogicalType | None:
    semantic = semantics.from_native(column.native)
    return None if semantic is None else semantics.logical_type(semantic)


def row_fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns in the schema of an envelope."""
    for field in fields_of(schema):
        if field["field"] in ("after", "before"):
            return fields_of(field)
    raise DecodeError(NO_SCHEMA, "the embedded schema has neither before nor after")


def fields_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(
        isinstance(field, dict) and isinstance(field.get("field"), str) for field in fields
    ):
        raise DecodeError(NO_SCHEMA, "the embedded schema has no fields")
    if len({field["field"] for field in fields}) != len(fields):
        raise DecodeError(NO_SCHEMA, "the embedded schema has a duplicate field")
    return fields
