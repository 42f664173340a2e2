"""The SQL dialect of Snowflake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS, NONE, TEXTS, Specials
from airflow_cdc_provider.targets.database.names import own_control_table
from airflow_cdc_provider.targets.database.update_from import UpdatesFrom
from airflow_cdc_provider.targets.restrictions import Allowed, Restriction
from airflow_cdc_provider.targets.snowflake.options import Identifiers, Json
from airflow_cdc_provider.targets.sparksql.names import quoted as spark_name

TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT16: "NUMBER(5,0)",
    Kind.INT32: "NUMBER(10,0)",
    Kind.INT64: "NUMBER(19,0)",
    Kind.FLOAT32: "FLOAT",
    Kind.FLOAT64: "FLOAT",
    Kind.TEXT: "VARCHAR",
    Kind.UUID: "VARCHAR(36)",
    Kind.BYTES: "BINARY",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ(6)",
    Kind.TIMESTAMPTZ: "TIMESTAMP_TZ(6)",
}

LARGEST_SCALE = 37
"""Largest scale of NUMBER. Numbers with a larger scale are stored as text."""

TEXT_BYTES, BINARY_BYTES = 16_777_216, 8_388_608
"""The length of VARCHAR and BINARY without a declared length."""


@dataclass(frozen=True)
class SnowflakeSql(UpdatesFrom):
    """``schema``: database and schema as in the YAML, which are not changed to capitals."""

    database: str
    schema: str
    identifiers: Identifiers = Identifiers.UPPER
    json: Json = Json.TEXT

    order_type = "VARCHAR"
    flag_type = "BOOLEAN"
    short_text_type = "VARCHAR"
    long_text_type = "VARCHAR"
    integer_type = "BIGINT"
    primary_key = "PRIMARY KEY ({})"
    record_columns = ("record",)
    parameter = "%s"
    staged_rows_need_index = False

    def name(self, name: str) -> str:
        """The name as Snowflake stores it."""
        return name.upper() if self.identifiers is Identifiers.UPPER else name

    def quoted(self, name: str) -> str:
        return exactly(self.name(name))

    @property
    def scope(self) -> str:
        return f"{exactly(self.database)}.{exactly(self.schema)}"

    def table(self, name: str) -> str:
        return f"{self.scope}.{self.quoted(name)}"

    def control_table(self, target_table: str) -> str:
        """An UPDATE locks the whole table."""
        return own_control_table(target_table)

    def column_type(self, column: Column, in_key: bool) -> str:
        kind = column.type.kind
        if kind is Kind.DECIMAL:
            precision, scale = column.type.precision or 0, column.type.scale or 0
            return f"NUMBER({precision},{scale})" if scale <= LARGEST_SCALE else "VARCHAR"
        if kind is Kind.JSON:
            return "VARIANT" if self._is_variant(column, in_key) else "VARCHAR"
        return TYPES[kind]

    def literal(self, canonical: object, column: Column) -> str:
        if canonical is None:
            return f"NULL::{self.column_type(column, in_key=False)}"
        from airflow_cdc_provider.targets.database.row_texts import loaded_text

        return self.value_of(text_literal(loaded_text(canonical, column)), column, in_key=False)

    def equal(self, column: Column, left: str, right: str) -> str:
        return f"EQUAL_NULL({left}, {right})" if column.nullable else f"{left} = {right}"

    def same_row(self, columns: Sequence[Column], row: str) -> str:
        """By values: the text of a FLOAT has fewer digits than its value."""
        pairs = ((self._comparable(row, column), self._comparable(S, column)) for column in columns)
        return " AND ".join(f"EQUAL_NULL({left}, {right})" for left, right in pairs)

    def create_table(
        self, name: str, columns: Sequence[str], comment: str, staging: bool, layout: str = ""
    ) -> list[str]:
        """``staging``: without time travel and fail-safe, which would be paid for."""
        kind = "TRANSIENT TABLE" if staging else "TABLE"
        remark = f" COMMENT = {text_literal(comment)}" if comment else ""
        collation = " DEFAULT_DDL_COLLATION = ''"  # else that of the schema, the database or the account
        return [f"CREATE {kind} IF NOT EXISTS {self.table(name)} ({', '.join(columns)}){layout}{collation}{remark}"]

    def layout(self, schema: TableSchema, cluster_by: Sequence[str]) -> str:
        """Snowflake clusters in the background, which costs credits."""
        return f" CLUSTER BY ({', '.join(map(self.quoted, cluster_by))})" if cluster_by else ""

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        if column.type.kind in TEXTS:
            return Restriction(Allowed.BYTES, TEXT_BYTES)
        return Restriction(Allowed.BYTES, BINARY_BYTES) if column.type.kind is Kind.BYTES else None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return NONE

    def value_of(self, text: str, column: Column, in_key: bool) -> str:
        """The value of the column from the text that is loaded. ``text``: SQL of type VARCHAR."""
        kind = self.column_type(column, in_key)
        if kind == "BINARY":
            return f"TO_BINARY({text}, 'HEX')"
        if kind == "VARIANT":
            return f"PARSE_JSON({text}, 'd')"  # 'd': of repeated members the last one, which is an error by default
        return f"({text} || '+00:00')::{kind}" if column.type.kind is Kind.TIMESTAMPTZ else f"{text}::{kind}"

    def read_expressions(self, column: Column) -> tuple[str, str]:
        """Texts, except for floats. Dates are days and timestamps microseconds since 1970."""
        name, text = self.quoted(column.name), spark_name(column.name)
        match column.type.kind:
            case Kind.BYTES:
                return f"HEX_ENCODE({name})", f"unhex({text})"
            case Kind.DATE:
                return (
                    f"DATEDIFF(day, '1970-01-01'::DATE, {name})::VARCHAR",
                    f"date_from_unix_date(CAST({text} AS INT))",
                )
            case Kind.TIMESTAMP:
                return _microseconds(name), f"CAST(timestamp_micros(CAST({text} AS BIGINT)) AS TIMESTAMP_NTZ)"
            case Kind.TIMESTAMPTZ:
                return _microseconds(name), f"timestamp_micros(CAST({text} AS BIGINT))"
            case Kind.JSON if self._is_variant(column, in_key=False):
                return f"TO_JSON({name})", ""
            case kind if kind in FLOATS:
                return name, ""
            case _:
                return f"{name}::VARCHAR", ""

    def _is_variant(self, column: Column, in_key: bool) -> bool:
        return self.json is Json.VARIANT and not in_key

    def _comparable(self, alias: str, column: Column) -> str:
        name = f"{alias}.{self.quoted(column.name)}"
        is_variant = column.type.kind is Kind.JSON and self._is_variant(column, in_key=False)
        return f"TO_JSON({name})" if is_variant else name


def _microseconds(name: str) -> str:
    return f"DATE_PART(epoch_microsecond, {name})::VARCHAR"


def exactly(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Backslashes are escapes in Snowflake's literals."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
