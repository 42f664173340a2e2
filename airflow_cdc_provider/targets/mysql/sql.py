"""The SQL dialect of MySQL and MariaDB."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS as T
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import (
    FLOATS,
    LONG_KEY,
    NAN_FLOAT,
    NONE,
    TEXTS,
    Specials,
    declared_length,
)
from airflow_cdc_provider.targets.database.names import CONTROL, ROW
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.restrictions import Allowed, Restriction

ASCII = "CHARACTER SET ascii COLLATE ascii_bin"
TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "TINYINT(1)",
    Kind.INT16: "SMALLINT",
    Kind.INT32: "INT",
    Kind.INT64: "BIGINT",
    Kind.UUID: f"VARCHAR(36) {ASCII}",
    Kind.BYTES: "LONGBLOB",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "DATETIME(6)",
    Kind.TIMESTAMPTZ: "DATETIME(6)",
}

LARGEST_SCALE = 30
"""Largest scale of DECIMAL in MySQL. Numbers with a larger scale are stored as text."""

KEY_TEXT_CHARACTERS = 255
"""Length of text in a key: three such columns fit into the 3,072 bytes of an index."""

FIXED_BYTES = {"TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "DOUBLE": 8, "DATE": 3, "DATETIME": 8}
COMMENT_CHARACTERS = 1024
LAST_IN_THREE_BYTES, REPLACEMENT = 0xFFFF, "\ufffd"


@dataclass(frozen=True)
class MysqlSql:
    """``collation`` compares bytes without padding; MySQL and MariaDB have different names for it."""

    schema: str
    floats: Floats = Floats.NUMBER
    collation: str = "utf8mb4_nopad_bin"

    order_type = f"VARCHAR(200) {ASCII}"
    flag_type = "TINYINT(1)"
    short_text_type = f"VARCHAR(100) {ASCII}"
    integer_type = "BIGINT"
    primary_key = "PRIMARY KEY ({})"
    record_columns = ("record",)
    parameter = "%s"
    staged_rows_need_index = True

    @property
    def long_text_type(self) -> str:
        return f"LONGTEXT CHARACTER SET utf8mb4 COLLATE {self.collation}"

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def column_id(self, name: str) -> str:
        return name.lower()

    def table(self, name: str) -> str:
        return f"{self.quoted(self.schema)}.{self.quoted(name)}"

    def control_table(self, target_table: str) -> str:
        return CONTROL

    def column_type(self, column: Column, in_key: bool) -> str:
        """JSON is stored as text, since the type JSON normalises it. Timestamps are DATETIME in UTC, since TIMESTAMP
        ends in 2038. Floats are DOUBLE, since FLOAT shows only six digits."""
        kind = column.type.kind
        if kind in FLOATS:
            return "DOUBLE" if self.floats is Floats.NUMBER else f"VARCHAR(40) {ASCII}"
        if kind is Kind.DECIMAL:
            precision, scale = column.type.precision or 0, column.type.scale or 0
            return f"DECIMAL({precision},{scale})" if scale <= LARGEST_SCALE else f"VARCHAR(80) {ASCII}"
        if kind in (Kind.TEXT, Kind.JSON):
            length = f"VARCHAR({KEY_TEXT_CHARACTERS})" if in_key else "LONGTEXT"
            return f"{length} CHARACTER SET utf8mb4 COLLATE {self.collation}"
        return f"VARBINARY({KEY_TEXT_CHARACTERS * 4})" if kind is Kind.BYTES and in_key else TYPES[kind]

    def key_bytes(self, schema: TableSchema) -> int:
        """As InnoDB counts them: four bytes for each character of a text, one for each of our own codes."""
        return sum(self._key_bytes(schema.column(name)) for name in schema.key)

    def _key_bytes(self, column: Column) -> int:
        kind = self.column_type(column, in_key=True)
        if kind.startswith("DECIMAL"):
            whole, fraction = (column.type.precision or 0) - (column.type.scale or 0), column.type.scale or 0
            return sum(digits // 9 * 4 + (digits % 9 + 1) // 2 for digits in (whole, fraction))
        if found := re.match(r"VAR\w+\((\d+)\)", kind):
            return int(found[1]) * (4 if "utf8mb4" in kind else 1)
        return FIXED_BYTES[kind.partition("(")[0]]

    def widen(self, table: str, before: Column, after: Column, in_key: bool) -> str | None:
        """Floats are stored as the texts of their numbers say, which a wider type does not."""
        old, new = self.column_type(before, in_key), self.column_type(after, in_key)
        if after.type.kind in FLOATS or old.startswith("VARCHAR") != new.startswith("VARCHAR"):
            return None
        return self._modify(table, after, in_key) if old != new else ""

    def comment_table(self, name: str, text: str) -> str:
        return f"ALTER TABLE {self.table(name)} COMMENT = {text_literal(text)}"

    def comment_on(self, table: str, column: Column, in_key: bool, text: str) -> str:
        """The server refuses the statement if it would change more than the comment. A comment has no characters of
        four bytes."""
        fitting = "".join(one if ord(one) <= LAST_IN_THREE_BYTES else REPLACEMENT for one in text[:COMMENT_CHARACTERS])
        return f"{self._modify(table, column, in_key)} COMMENT {text_literal(fitting)}, ALGORITHM=INSTANT"

    def _modify(self, table: str, column: Column, in_key: bool) -> str:
        not_null = " NOT NULL" if in_key and not column.nullable else ""
        kind = self.column_type(column, in_key)
        return f"ALTER TABLE {table} MODIFY COLUMN {self.quoted(column.name)} {kind}{not_null}"

    def literal(self, canonical: object, column: Column) -> str:
        if canonical is None:
            return "NULL"
        from airflow_cdc_provider.targets.database.row_texts import loaded_text

        text = loaded_text(canonical, column)
        return f"X'{text}'" if column.type.kind is Kind.BYTES else text_literal(text)

    def equal(self, column: Column, left: str, right: str) -> str:
        return f"{left} {'<=>' if column.nullable else '='} {right}"

    def same_row(self, columns: Sequence[Column], row: str) -> str:
        return f"{S}.{self.quoted(ROW)} = {self.row_text(row, columns)}"

    def row_text(self, alias: str, columns: Sequence[Column]) -> str:
        """A hash over the values' texts. CONCAT comes first because HEX of a number only covers its integer part."""
        values = (f"{alias}.{self.quoted(column.name)}" for column in columns)
        texts = ", ".join(f"COALESCE(HEX(CONCAT({value})), '-')" for value in values)
        return f"CONVERT(SHA2(CONCAT_WS(',', {texts}), 256) USING ascii)"

    def update(self, target: str, staged: str, condition: str, values: Mapping[str, str]) -> str:
        sets = ", ".join(f"{T}.{self.quoted(name)} = {value}" for name, value in values.items())
        return f"UPDATE {target} AS {T} JOIN {staged} AS {S} ON {condition} SET {sets}"

    def deleted_row(self, target: str) -> str:
        return T

    def delete(self, target: str, staged: str, condition: str) -> str:
        return f"DELETE {T} FROM {target} AS {T} JOIN {staged} AS {S} ON {condition}"

    def delete_where(self, target: str, condition: str) -> str:
        return f"DELETE {T} FROM {target} AS {T} WHERE {condition}"

    def create_table(
        self, name: str, columns: Sequence[str], comment: str, staging: bool, layout: str = ""
    ) -> list[str]:
        comment_clause = f" COMMENT={text_literal(comment)}" if comment else ""
        return [f"CREATE TABLE IF NOT EXISTS {self.table(name)} ({', '.join(columns)}) ENGINE=InnoDB{comment_clause}"]

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        kind = column.type.kind
        if kind in FLOATS and self.floats is Floats.NUMBER:
            return Restriction(Allowed.FINITE)
        if in_key and kind in TEXTS:
            return Restriction(Allowed.CHARACTERS, KEY_TEXT_CHARACTERS)
        if in_key and kind is Kind.BYTES:
            return Restriction(Allowed.BYTES, KEY_TEXT_CHARACTERS * 4)
        return None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        kind = column.type.kind
        if kind in FLOATS and self.floats is Floats.NUMBER:
            return NAN_FLOAT
        limit = KEY_TEXT_CHARACTERS * (4 if kind is Kind.BYTES else 1)
        fits = (declared_length(column) or limit + 1) <= limit
        return NONE if not in_key or fits or kind not in TEXTS | {Kind.BYTES} else LONG_KEY

    def read_expressions(self, column: Column) -> tuple[str, str]:
        """Dates as days and timestamps as microseconds: Java's date types use another calendar before 1582."""
        name = self.quoted(column.name)
        match column.type.kind:
            case Kind.BOOLEAN:
                return f"{name} + 0", f"CAST({name} AS BOOLEAN)"
            case Kind.DATE:
                return f"DATEDIFF({name}, '1970-01-01')", f"date_from_unix_date(CAST({name} AS INT))"
            case Kind.TIMESTAMP:
                return _microseconds(name), f"CAST(timestamp_micros({name}) AS TIMESTAMP_NTZ)"
            case Kind.TIMESTAMPTZ:
                return _microseconds(name), f"timestamp_micros({name})"
            case Kind.INT16:
                return name, f"CAST({name} AS SMALLINT)"
            case Kind.FLOAT32:
                return name, f"CAST({name} AS FLOAT)"
            case Kind.FLOAT64:
                return name, f"CAST({name} AS DOUBLE)"
            case Kind.DECIMAL:
                return name, f"CAST({name} AS DECIMAL({column.type.precision},{column.type.scale}))"
            case _:
                return name, ""


def _microseconds(name: str) -> str:
    return f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {name})"


def text_literal(text: str) -> str:
    """Our sessions interpret backslashes as escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
