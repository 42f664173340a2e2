"""The columns of a copy: their types in Spanner, and what these require of values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.special_values import LONG_KEY, NONE, TEXTS, Specials, declared_length
from airflow_cdc_provider.targets.restrictions import Allowed, Restriction
from airflow_cdc_provider.targets.spanner.names import COPY, MARKER, ROW, column_name, quoted
from airflow_cdc_provider.targets.spanner.options import Json

WHOLE_DIGITS, SCALE = 29, 9
"""Digits of NUMERIC before and after the point. Numbers with more are stored as text."""

STRING_CHARACTERS, BYTES_LENGTH = 2_621_440, 10_485_760
"""The length of STRING(MAX) and BYTES(MAX)."""

KEY_BYTES = 8_192
"""Of all columns of a key together."""

KEY_VALUE_BYTES = 8_000
"""Of one text in a key: leaves some bytes for another, short column."""


class SpannerType(StrEnum):
    """The value is the type in DDL."""

    BOOL = "BOOL"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    NUMERIC = "NUMERIC"
    STRING = "STRING(MAX)"
    BYTES = "BYTES(MAX)"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    JSON = "JSON"


FLOATS = frozenset({SpannerType.FLOAT32, SpannerType.FLOAT64})

TYPES: dict[Kind, SpannerType] = {
    Kind.BOOLEAN: SpannerType.BOOL,
    Kind.INT16: SpannerType.INT64,
    Kind.INT32: SpannerType.INT64,
    Kind.INT64: SpannerType.INT64,
    Kind.FLOAT32: SpannerType.FLOAT32,
    Kind.FLOAT64: SpannerType.FLOAT64,
    Kind.TEXT: SpannerType.STRING,
    Kind.UUID: SpannerType.STRING,
    Kind.BYTES: SpannerType.BYTES,
    Kind.DATE: SpannerType.DATE,
    Kind.TIMESTAMP: SpannerType.TIMESTAMP,
    Kind.TIMESTAMPTZ: SpannerType.TIMESTAMP,
}


@dataclass(frozen=True)
class StoredColumn:
    """``source``: its name in the source, or that of a technical column."""

    source: str
    logical: LogicalType
    type: SpannerType
    not_null: bool = False

    @property
    def name(self) -> str:
        return column_name(self.source)

    @property
    def definition(self) -> str:
        return f"{quoted(self.name)} {self.type}{' NOT NULL' if self.not_null else ''}"


def stored_type(logical: LogicalType, in_key: bool, json: Json) -> SpannerType:
    if logical.kind is Kind.DECIMAL:
        precision, scale = logical.precision or 0, logical.scale or 0
        fits = scale <= SCALE and precision - scale <= WHOLE_DIGITS
        return SpannerType.NUMERIC if fits else SpannerType.STRING
    if logical.kind is Kind.JSON:
        return SpannerType.JSON if json is Json.JSON and not in_key else SpannerType.STRING
    if logical.kind is Kind.FLOAT32 and in_key:
        return SpannerType.FLOAT64
    return TYPES[logical.kind]


def stored_columns(schema: TableSchema, json: Json) -> tuple[StoredColumn, ...]:
    """Of the source's columns. Rows without a key are compared by their texts, which the type JSON would change."""
    return tuple(
        StoredColumn(
            column.name,
            column.type,
            stored_type(column.type, column.name in schema.key or not schema.key, json),
            column.name in schema.key and not column.nullable,
        )
        for column in schema.columns
    )


def rewritten_documents(schema: TableSchema, json: Json) -> tuple[str, ...]:
    """As ``RewritesDocuments``."""
    return tuple(column.source for column in stored_columns(schema, json) if column.type is SpannerType.JSON)


ORDER_COLUMN = StoredColumn(ORDER, LogicalType(Kind.TEXT), SpannerType.STRING, not_null=True)
DELETED_COLUMN = StoredColumn(DELETED, LogicalType(Kind.BOOLEAN), SpannerType.BOOL, not_null=True)
ROW_COLUMNS = (
    StoredColumn(ROW, LogicalType(Kind.TEXT), SpannerType.STRING, not_null=True),
    StoredColumn(COPY, LogicalType(Kind.TEXT), SpannerType.STRING, not_null=True),
)


def technical_columns(schema: TableSchema, soft: bool) -> tuple[StoredColumn, ...]:
    if not schema.key:
        return ROW_COLUMNS
    return (ORDER_COLUMN, DELETED_COLUMN) if soft else (ORDER_COLUMN,)


def key_names(schema: TableSchema) -> tuple[str, ...]:
    """The primary key in Spanner, in key order."""
    return tuple(map(column_name, schema.key)) or (ROW, COPY)


def create_table(name: str, schema: TableSchema, soft: bool, json: Json, identity: str) -> str:
    columns = [column.definition for column in (*stored_columns(schema, json), *technical_columns(schema, soft))]
    checked = quoted(technical_columns(schema, soft)[0].name)
    marker = f"CONSTRAINT {quoted(MARKER + identity)} CHECK ({checked} IS NOT NULL)"
    key = ", ".join(map(quoted, key_names(schema)))
    return f"CREATE TABLE {quoted(name)} ({', '.join([*columns, marker])}) PRIMARY KEY ({key})"


def add_column(table: str, column: Column, json: Json, keyless: bool) -> str:
    kind = stored_type(column.type, keyless, json)
    return f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(column_name(column.name))} {kind}"


def restriction(column: Column, in_key: bool) -> Restriction | None:
    kind = column.type.kind
    if in_key and kind in TEXTS | {Kind.BYTES}:
        return Restriction(Allowed.BYTES, KEY_VALUE_BYTES)
    if kind in TEXTS:
        return Restriction(Allowed.CHARACTERS, STRING_CHARACTERS)
    return Restriction(Allowed.BYTES, BYTES_LENGTH) if kind is Kind.BYTES else None


def unsupported_values(column: Column, in_key: bool) -> Specials:
    """A character has at most four bytes."""
    kind = column.type.kind
    limit = KEY_VALUE_BYTES // (1 if kind is Kind.BYTES else 4)
    fits = (declared_length(column) or limit + 1) <= limit
    return NONE if not in_key or fits or kind not in TEXTS | {Kind.BYTES} else LONG_KEY
