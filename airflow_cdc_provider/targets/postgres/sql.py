"""The SQL dialect of PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.schema import Column, Kind
from airflow_cdc_provider.core.table.special_values import NONE, TEXTS, ZERO_CHARACTER, Specials
from airflow_cdc_provider.targets.database.names import CONTROL, ROW
from airflow_cdc_provider.targets.database.update_from import UpdatesFrom
from airflow_cdc_provider.targets.restrictions import Allowed, Restriction

TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT16: "smallint",
    Kind.INT32: "integer",
    Kind.INT64: "bigint",
    Kind.FLOAT32: "real",
    Kind.FLOAT64: "double precision",
    Kind.TEXT: "text",
    Kind.JSON: "json",
    Kind.UUID: "uuid",
    Kind.BYTES: "bytea",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
}

IN_CATALOG = {"timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone"}
"""The other types have one name."""

EPOCH_MICROSECONDS = "(extract(epoch from {}) * 1000000)::bigint"


@dataclass(frozen=True)
class PostgresSql(UpdatesFrom):
    schema: str

    # Order keys consist of digits and letters of one case, and some collations sort letters before digits.
    order_type = 'text COLLATE "C"'
    flag_type = "boolean"
    short_text_type = "text"
    long_text_type = "text"
    integer_type = "BIGINT"
    primary_key = "PRIMARY KEY ({})"
    record_columns = ("record",)
    parameter = "%s"
    staged_rows_need_index = False

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def table(self, name: str) -> str:
        return f"{self.quoted(self.schema)}.{self.quoted(name)}"

    def control_table(self, target_table: str) -> str:
        return CONTROL

    def column_type(self, column: Column, in_key: bool) -> str:
        """``json`` keeps the document's exact text; in a key it is text, since ``json`` has no equality."""
        kind = column.type.kind
        if kind is Kind.DECIMAL:
            return f"numeric({column.type.precision},{column.type.scale})"
        return "text" if kind is Kind.JSON and in_key else TYPES[kind]

    def widen(self, table: str, before: Column, after: Column, in_key: bool) -> str | None:
        return f"ALTER TABLE {table} ALTER COLUMN {self.quoted(after.name)} TYPE {self.column_type(after, in_key)}"

    def comment_on(self, table: str, column: Column, in_key: bool, text: str) -> str:
        """Without zero characters, which no text of PostgreSQL has."""
        return f"COMMENT ON COLUMN {table}.{self.quoted(column.name)} IS {_text(text.replace(chr(0), ''))}"

    def literal(self, canonical: object, column: Column) -> str:
        kind = self.column_type(column, in_key=False)
        if canonical is None:
            return f"NULL::{kind}"
        text = canonical if isinstance(canonical, str) else json.dumps(canonical)
        if column.type.kind is Kind.BYTES:
            return f"decode({_text(text)}, 'base64')"
        return f"{_text(text)}::{kind}"

    def equal(self, column: Column, left: str, right: str) -> str:
        """Unlike IS NOT DISTINCT FROM, this expression can use an index."""
        same = f"{left} = {right}"
        return f"({same} OR ({left} IS NULL AND {right} IS NULL))" if column.nullable else same

    def same_row(self, columns: Sequence[Column], row: str) -> str:
        return f"{S}.{self.quoted(ROW)} = {self.row_text(row, columns)}"

    def row_text(self, alias: str, columns: Sequence[Column]) -> str:
        """PostgreSQL's text of a row, which is unambiguous and distinguishes NULL from empty."""
        return f"ROW({', '.join(f'{alias}.{self.quoted(column.name)}' for column in columns)})::text"

    def create_table(
        self, name: str, columns: Sequence[str], comment: str, staging: bool, layout: str = ""
    ) -> list[str]:
        """``staging``: unlogged, since staged rows can be staged again."""
        create = f"CREATE {'UNLOGGED ' if staging else ''}TABLE IF NOT EXISTS {self.table(name)} ({', '.join(columns)})"
        return [create, *([self.comment_table(name, comment)] if comment else [])]

    def hide_rows(self, table: str) -> str:
        """Without a policy, only the owner sees rows."""
        return f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"

    def comment_table(self, name: str, text: str) -> str:
        return f"COMMENT ON TABLE {self.table(name)} IS {_text(text)}"

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        match column.type.kind:
            case kind if kind in TEXTS:
                return Restriction(Allowed.NO_ZERO_CHARACTER)
            case Kind.UUID:
                return Restriction(Allowed.UUID)
            case _:
                return None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return ZERO_CHARACTER if column.type.kind in TEXTS else NONE

    def read_expressions(self, column: Column) -> tuple[str, str]:
        """Dates as days and timestamps as microseconds: Java's date types use another calendar before 1582."""
        name, read = self.quoted(column.name), "`" + column.name.replace("`", "``") + "`"
        match column.type.kind:
            case Kind.DATE:
                return f"({name} - date '1970-01-01')", f"date_from_unix_date({read})"
            case Kind.TIMESTAMP:
                return EPOCH_MICROSECONDS.format(name), f"CAST(timestamp_micros({read}) AS TIMESTAMP_NTZ)"
            case Kind.TIMESTAMPTZ:
                return EPOCH_MICROSECONDS.format(name), f"timestamp_micros({read})"
            case Kind.JSON | Kind.UUID:
                return f"{name}::text", ""
            case _:
                return name, ""


def _text(text: str) -> str:
    """Independent of the setting standard_conforming_strings."""
    mark = "E" if "\\" in text else ""
    return mark + "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
