"""What the SQL of one database spells in its own way. Text only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from airflow_cdc_provider.core.table.merge_plan import DELETED, KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.targets.database.names import CONTROL, LOADS, ROW


class Sql(Protocol):
    """``column`` arguments are the column's own name, expressions are SQL. Rows of a target table are ``t``, staged
    rows ``s``."""

    @property
    def order_type(self) -> str: ...

    @property
    def flag_type(self) -> str: ...

    @property
    def short_text_type(self) -> str:
        """Of names and codes of ours; may stand in a key."""

    @property
    def long_text_type(self) -> str: ...

    @property
    def staged_rows_need_index(self) -> bool:
        """Whether joins with staged rows would be slow without one on their key."""

    def quoted(self, name: str) -> str: ...

    def table(self, name: str) -> str:
        """A table of the target's schema, by its full name."""

    def column_type(self, column: Column, in_key: bool) -> str: ...

    def literal(self, canonical: object, column: Column) -> str:
        """A canonical value (as ``json.loads`` gives it) as SQL."""

    def same(self, left: str, right: str) -> str:
        """Equality by which NULL equals NULL."""

    def row_text(self, alias: str, columns: Sequence[Column]) -> str:
        """A text that two rows share only if they are equal copies, NULLs and signs of zero included. Fits into a short
        text."""

    def update(self, target: str, staged: str, condition: str, values: Mapping[str, str]) -> str: ...

    def delete(self, target: str, staged: str, condition: str) -> str: ...

    def delete_alone(self, target: str, condition: str) -> str: ...

    def create_table(self, name: str, columns: Sequence[str], comment: str, staging: bool) -> str: ...

    def insert_once(self, table: str, columns: Sequence[str]) -> str:
        """An INSERT with parameters that does nothing where the key is there already."""

    def refused(self, column: Column, in_key: bool, value: str) -> str:
        """See ``TargetTables.refused``."""

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        """See ``TargetTables.unsupported_values``."""

    def read_as(self, column: Column) -> tuple[str, str]:
        """This database's SQL by which Spark reads a column, and Spark SQL (empty where none is needed) that turns what
        it read into the column's Spark type."""


def column_list(sql: Sql, schema: TableSchema, soft: bool) -> list[str]:
    """The columns of a copy as CREATE TABLE wants them."""
    own = [
        f"{sql.quoted(column.name)} {sql.column_type(column, column.name in schema.key)}"
        f"{' NOT NULL' if column.name in schema.key and not column.nullable else ''}"
        for column in schema.columns
    ]
    order = [f"{sql.quoted(ORDER)} {sql.order_type} NOT NULL"] if schema.key else []
    return [*own, *order, *([f"{sql.quoted(DELETED)} {sql.flag_type} NOT NULL"] if soft else [])]


def staged_column_list(sql: Sql, schema: TableSchema) -> list[str]:
    """The columns of a table of rows to merge. ``_cdc_known`` is a text of 0 and 1, one per column of the schema."""
    own = [f"{sql.quoted(c.name)} {sql.column_type(c, c.name in schema.key)}" for c in schema.columns]
    row = [] if schema.key else [f"{sql.quoted(ROW)} {sql.short_text_type}"]
    return [
        *own,
        *row,
        f"{sql.quoted(ORDER)} {sql.order_type}",
        f"{sql.quoted(OP)} {sql.short_text_type} NOT NULL",
        f"{sql.quoted(KNOWN)} {sql.long_text_type}",
    ]


def add_columns(sql: Sql, table: str, columns: Sequence[Column]) -> str:
    added = ", ".join(f"ADD COLUMN {sql.quoted(c.name)} {sql.column_type(c, in_key=False)}" for c in columns)
    return f"ALTER TABLE {sql.table(table)} {added}"


def key_is_unique(schema: TableSchema) -> bool:
    """A primary key needs columns that are never NULL; other keys get an index that only makes them fast."""
    return bool(schema.key) and not any(schema.column(name).nullable for name in schema.key)


def control_tables(sql: Sql) -> list[str]:
    """Name and columns of the tables that are ours alone, as statements that do nothing where they exist."""
    quoted, name, text = sql.quoted, sql.short_text_type, sql.long_text_type
    control = [
        f"{quoted('target_table')} {name} NOT NULL",
        f"{quoted('identity')} {name} NOT NULL",
        f"{quoted('replicator')} {name} NOT NULL",
        f"{quoted('source_table')} {text} NOT NULL",
        f"{quoted('fence')} BIGINT NOT NULL",
        f"{quoted('cursor_window')} BIGINT NOT NULL",
        f"{quoted('nonce')} {name} NOT NULL",
        f"{quoted('record')} {text} NOT NULL",
        f"PRIMARY KEY ({quoted('target_table')}, {quoted('identity')})",
    ]
    loads = [
        f"{quoted('staging_table')} {name} NOT NULL",
        f"{quoted('share')} BIGINT NOT NULL",
        f"{quoted('loaded')} BIGINT NOT NULL",
        f"PRIMARY KEY ({quoted('staging_table')}, {quoted('share')})",
    ]
    return [
        sql.create_table(CONTROL, control, "", staging=False),
        sql.create_table(LOADS, loads, "", staging=False),
    ]
