"""The SQL dialect of Redshift.

What differs from PostgreSQL: blanks at the end of a text do not count in a comparison; the table of a DELETE has no
alias; names are in lower case; a backslash in a literal is an escape. Conditions between a table and its staged rows
consist of equations of one side with the other, which Redshift can join by hashes, also in NOT EXISTS.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import (
    FLOATS,
    NAN_FLOAT,
    NONE,
    TEXTS,
    ZERO_CHARACTER,
    Specials,
)
from airflow_cdc_provider.targets.database.names import own_control_table
from airflow_cdc_provider.targets.database.update_from import UpdatesFrom
from airflow_cdc_provider.targets.redshift.options import Json, in_lower_case
from airflow_cdc_provider.targets.restrictions import Allowed, Restriction

TEXT_BYTES = 65_535
BINARY_BYTES = 32_767
"""UNLOAD returns bytes as hex texts, which end at 65,535 bytes."""

TEXT, DIGITS, UUID_TEXT = f"VARCHAR({TEXT_BYTES})", "VARCHAR(64)", "VARCHAR(36)"
TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT16: "SMALLINT",
    Kind.INT32: "INTEGER",
    Kind.INT64: "BIGINT",
    Kind.FLOAT32: "REAL",
    Kind.FLOAT64: "DOUBLE PRECISION",
    Kind.TEXT: TEXT,
    Kind.JSON: TEXT,
    Kind.UUID: UUID_TEXT,
    Kind.BYTES: f"VARBYTE({BINARY_BYTES})",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMPTZ",
}

LARGEST_SCALE = 37
"""Largest scale of DECIMAL. Numbers with a larger scale are stored as text."""

SHORT_DECIMAL = 19
"""DECIMAL of this precision is stored in 8 bytes, which do not hold all its numbers."""

SORT_COLUMNS = 400
MICROSECONDS = "YYYY-MM-DD HH24:MI:SS.US"
ZEROS: dict[Kind, str] = {
    Kind.BOOLEAN: "FALSE",
    Kind.DATE: "'1970-01-01'::DATE",
    Kind.TIMESTAMP: "'1970-01-01'::TIMESTAMP",
    Kind.TIMESTAMPTZ: "'1970-01-01'::TIMESTAMPTZ",
}


@dataclass(frozen=True)
class RedshiftSql(UpdatesFrom):
    schema: str
    json: Json = Json.TEXT

    order_type = "VARCHAR(200)"
    flag_type = "BOOLEAN"
    short_text_type = "VARCHAR(256)"
    long_text_type = TEXT
    integer_type = "BIGINT"
    primary_key = "PRIMARY KEY ({})"
    record_columns = ("record", "record_2", "record_3", "record_4")
    parameter = "CAST(%s AS {})"
    staged_rows_need_index = False

    def quoted(self, name: str) -> str:
        """In lower case, to which Redshift itself folds names by default."""
        return '"' + self.stored(name).replace('"', '""') + '"'

    def stored(self, name: str) -> str:
        """The name as the catalog has it."""
        return in_lower_case(name)

    def table(self, name: str) -> str:
        return f"{self.quoted(self.schema)}.{self.quoted(name)}"

    def control_table(self, target_table: str) -> str:
        """Two transactions that change one table conflict, also in different rows."""
        return own_control_table(target_table)

    def column_type(self, column: Column, in_key: bool) -> str:
        kind = column.type.kind
        if kind is Kind.DECIMAL:
            precision, scale = decimal_digits(column)
            return f"DECIMAL({precision},{scale})" if scale <= LARGEST_SCALE else DIGITS
        return "SUPER" if self.is_super(column, in_key) else TYPES[kind]

    def is_super(self, column: Column, in_key: bool) -> bool:
        return column.type.kind is Kind.JSON and self.json is Json.SUPER and not in_key

    def literal(self, canonical: object, column: Column) -> str:
        kind = self.column_type(column, in_key=False)
        if canonical is None:
            return f"NULL::{kind}"
        text = canonical if isinstance(canonical, str) else json.dumps(canonical)
        if column.type.kind is Kind.BYTES:
            return f"FROM_HEX('{b64decode(text).hex()}')"
        return f"JSON_PARSE({text_literal(text)})" if kind == "SUPER" else f"{text_literal(text)}::{kind}"

    def equal(self, column: Column, left: str, right: str) -> str:
        """Of a key, which has no NaN."""
        return self._all_equal(column, left, right, in_key=True)

    def same_row(self, columns: Sequence[Column], row: str) -> str:
        return " AND ".join(self._same_value(replace(column, nullable=True), row) for column in columns)

    def _same_value(self, column: Column, row: str) -> str:
        left, right = f"{row}.{self.quoted(column.name)}", f"{S}.{self.quoted(column.name)}"
        same = self._all_equal(column, left, right, in_key=False)
        if column.type.kind in FLOATS:  # a text may have fewer digits than the number; NaN may differ from itself
            return f"{same} AND ({left} = {right} OR {left} <> {left} OR {left} IS NULL)"
        return same

    def _all_equal(self, column: Column, left: str, right: str, in_key: bool) -> str:
        pairs = zip(self._parts(column, left, in_key), self._parts(column, right, in_key), strict=True)
        return " AND ".join(f"{one} = {other}" for one, other in pairs)

    def _parts(self, column: Column, value: str, in_key: bool) -> list[str]:
        """Expressions that are all equal for two values only if the values are, which in a nullable column includes
        NULL."""
        kind, parts = column.type.kind, {value: ZEROS.get(column.type.kind, "0")}
        if kind in FLOATS:  # by its text, 0 differs from -0
            parts = {f"CAST({value} AS VARCHAR(32))": "''", **(parts if in_key else {})}
        elif kind is Kind.BYTES:
            parts = {f"TO_HEX({value})" if column.nullable else value: "'-'"}
        elif "VARCHAR" in self.column_type(column, in_key) or self.is_super(column, in_key):
            text = f"JSON_SERIALIZE({value})" if self.is_super(column, in_key) else value
            parts = {text: "''", f"OCTET_LENGTH({text})": "-1"}
        elif column.nullable:
            parts |= {f"CASE WHEN {value} IS NULL THEN 0 ELSE 1 END": ""}
        return [f"COALESCE({part}, {zero})" if column.nullable and zero else part for part, zero in parts.items()]

    def deleted_row(self, target: str) -> str:
        return target

    def delete(self, target: str, staged: str, condition: str) -> str:
        return f"DELETE FROM {target} USING {staged} AS {S} WHERE {condition}"

    def delete_where(self, target: str, condition: str) -> str:
        return f"DELETE FROM {target} WHERE {condition}"

    def create_table(
        self, name: str, columns: Sequence[str], comment: str, staging: bool, layout: str = ""
    ) -> list[str]:
        """``staging``: without backup, since staged rows can be staged again."""
        backup = " BACKUP NO" if staging else ""
        create = f"CREATE TABLE IF NOT EXISTS {self.table(name)} ({', '.join(columns)}){backup}{layout}"
        return [create, *([f"COMMENT ON TABLE {self.table(name)} IS {text_literal(comment)}"] if comment else [])]

    def layout(self, schema: TableSchema, cluster_by: Sequence[str]) -> str:
        """A key of one column decides where a row is, so that a table and its staged rows meet without a transfer. The
        first of several columns may have few values, which would leave slices empty: there Redshift chooses."""
        key = [schema.column(name) for name in schema.key]
        sorted_by = [self.quoted(name) for name in cluster_by or schema.key if self._can_sort(schema.column(name))]
        alone = len(key) == 1 and not key[0].nullable and key[0].type.kind not in (Kind.BOOLEAN, Kind.BYTES)
        placed = f"DISTSTYLE KEY DISTKEY ({self.quoted(key[0].name)})" if alone else "DISTSTYLE AUTO"
        order = f"COMPOUND SORTKEY ({', '.join(sorted_by[:SORT_COLUMNS])})" if sorted_by else "SORTKEY AUTO"
        return f" {placed} {order}"

    def staged_layout(self, schema: TableSchema) -> str:
        return self.layout(schema, ())

    def _can_sort(self, column: Column) -> bool:
        return column.type.kind is not Kind.BYTES and not self.is_super(column, in_key=False)

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        match column.type.kind:
            case kind if kind in TEXTS:
                return Restriction(Allowed.TEXT_BYTES, TEXT_BYTES)
            case Kind.BYTES:
                return Restriction(Allowed.BYTES, BINARY_BYTES)
            case Kind.UUID:
                return Restriction(Allowed.UUID)
            case kind if kind in FLOATS and in_key:
                return Restriction(Allowed.FINITE)
            case _:
                return None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        if column.type.kind in TEXTS:
            return ZERO_CHARACTER
        return NAN_FLOAT if in_key and column.type.kind in FLOATS else NONE

    def read_expressions(self, column: Column) -> tuple[str, str]:
        """Texts, except for floats: UNLOAD writes neither VARBYTE nor time zones to Parquet."""
        name, text = self.quoted(column.name), "`" + column.name.replace("`", "``") + "`"
        match column.type.kind:
            case Kind.BOOLEAN:
                return f"CASE WHEN {name} THEN 'true' WHEN NOT {name} THEN 'false' END", ""
            case Kind.BYTES:
                return f"TO_HEX({name})", f"unhex({text})"
            case Kind.DATE:
                return f"TO_CHAR({name}, 'YYYY-MM-DD')", ""
            case Kind.TIMESTAMP:
                return f"TO_CHAR({name}, '{MICROSECONDS}')", ""
            case Kind.TIMESTAMPTZ:
                return f"TO_CHAR({name} AT TIME ZONE 'UTC', '{MICROSECONDS}') || 'Z'", ""
            case Kind.JSON if self.is_super(column, in_key=False):
                return f"JSON_SERIALIZE({name})", ""
            case kind if kind in FLOATS:
                return f"CAST({name} AS DOUBLE PRECISION)", ""
            case kind if kind in TEXTS or kind is Kind.UUID:
                return name, ""
            case _:
                return f"CAST({name} AS {DIGITS})", ""


def decimal_digits(column: Column) -> tuple[int, int]:
    """Precision and scale of the column of a decimal."""
    precision, scale = column.type.precision or 0, column.type.scale or 0
    return (precision + 1 if precision == SHORT_DECIMAL else precision), scale


def text_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
