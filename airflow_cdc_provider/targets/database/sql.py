"""The SQL dialect of a database, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from airflow_cdc_provider.core.table.merge_plan import DELETED, KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.targets.database.names import ROW
from airflow_cdc_provider.targets.restrictions import Restriction


class Sql(Protocol):
    """``column`` arguments are names, all others are SQL. Rows of a target table are ``_cdc_t``, or ``deleted_row`` in
    a DELETE; staged rows are ``_cdc_s``."""

    @property
    def order_type(self) -> str: ...

    @property
    def flag_type(self) -> str: ...

    @property
    def integer_type(self) -> str:
        """The type of our own numbers."""

    @property
    def short_text_type(self) -> str:
        """The type of our own names and codes; allowed in a key."""

    @property
    def long_text_type(self) -> str: ...

    @property
    def primary_key(self) -> str:
        """The constraint of our own tables, with ``{}`` for its columns."""

    @property
    def record_columns(self) -> Sequence[str]:
        """The columns of a control row that contain the record, as one text or as pieces of it in this order."""

    @property
    def parameter(self) -> str:
        """A parameter as a column of a query, with ``{}`` for its type if it has to be stated."""

    @property
    def staged_rows_need_index(self) -> bool:
        """Whether joins with staged rows are slow without an index on their key."""

    def quoted(self, name: str) -> str: ...

    def column_id(self, name: str) -> str:
        """Equal for two names that only one column of a table can have."""

    def table(self, name: str) -> str:
        """The qualified name of a table in the target's schema."""

    def control_table(self, target_table: str) -> str:
        """The name of the table with the control rows of a target table. Several target tables share one, unless a
        transaction locks whole tables."""

    def column_type(self, column: Column, in_key: bool) -> str: ...

    def literal(self, canonical: object, column: Column) -> str:
        """A canonical value (as ``json.loads`` gives it) as SQL."""

    def equal(self, column: Column, left: str, right: str) -> str:
        """Equality of two values of a column of the key, for which NULL equals NULL. ``left``, ``right``: SQL."""

    def same_row(self, columns: Sequence[Column], row: str) -> str:
        """Whether all values of ``row``, one without key, are equal to those of a staged row, NULLs included."""

    def deleted_row(self, target: str) -> str:
        """The name of a row of the target in the condition of a DELETE."""

    def update(self, target: str, staged: str, condition: str, values: Mapping[str, str]) -> str: ...

    def delete(self, target: str, staged: str, condition: str) -> str: ...

    def delete_where(self, target: str, condition: str) -> str: ...

    def create_table(
        self, name: str, columns: Sequence[str], comment: str, staging: bool, layout: str = ""
    ) -> list[str]:
        """Idempotent statements. ``layout``: as ``ArrangesRows`` gives it."""

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        """See ``TargetTables.restriction``."""

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        """See ``TargetTables.unsupported_values``."""

    def read_expressions(self, column: Column) -> tuple[str, str]:
        """The database's SQL expression that Spark reads, and a Spark SQL expression (may be empty) that converts the
        result to the column's Spark type."""


@runtime_checkable
class ArrangesRows(Protocol):
    """The dialect of a database that can keep rows with near values of some columns together."""

    def layout(self, schema: TableSchema, cluster_by: Sequence[str]) -> str:
        """The clauses of CREATE TABLE for a copy; may be empty. ``cluster_by``: as in the rule of the table."""


@runtime_checkable
class ArrangesStagedRows(Protocol):
    """The dialect of a database that joins tables faster if both are placed alike."""

    def staged_layout(self, schema: TableSchema) -> str:
        """The clauses of CREATE TABLE for staged rows."""


@runtime_checkable
class ComparesRowTexts(Protocol):
    """The dialect of a database that compares rows without a key by one text, which staged rows have in a column."""

    def row_text(self, alias: str, columns: Sequence[Column]) -> str:
        """A text that is equal for two rows only if all values are, NULLs and signs of zero included. Fits into a
        short text."""


@runtime_checkable
class HidesRows(Protocol):
    """The dialect of a database that gives privileges on each new table by default, also on one that is loaded."""

    def hide_rows(self, table: str) -> str:
        """The statement that hides all rows of a table from other users. ``table``: SQL."""


def column_list(sql: Sql, schema: TableSchema, soft: bool) -> list[str]:
    """Column definitions of a copy for CREATE TABLE."""
    own = [
        f"{sql.quoted(column.name)} {sql.column_type(column, column.name in schema.key)}"
        f"{' NOT NULL' if column.name in schema.key and not column.nullable else ''}"
        for column in schema.columns
    ]
    order = [f"{sql.quoted(ORDER)} {sql.order_type} NOT NULL"] if schema.key else []
    return [*own, *order, *([f"{sql.quoted(DELETED)} {sql.flag_type} NOT NULL"] if soft else [])]


def staged_column_list(sql: Sql, schema: TableSchema) -> list[str]:
    """Column definitions of a table of staged rows. ``_cdc_known`` has one digit, 0 or 1, per column of the schema."""
    own = [f"{sql.quoted(c.name)} {sql.column_type(c, c.name in schema.key)}" for c in schema.columns]
    row = [f"{sql.quoted(ROW)} {sql.short_text_type}"] if has_row_texts(sql, schema) else []
    return [
        *own,
        *row,
        f"{sql.quoted(ORDER)} {sql.order_type}",
        f"{sql.quoted(OP)} {sql.short_text_type} NOT NULL",
        f"{sql.quoted(KNOWN)} {sql.long_text_type}",
    ]


def has_row_texts(sql: Sql, schema: TableSchema) -> bool:
    """Whether staged rows have their text in a column."""
    return isinstance(sql, ComparesRowTexts) and not schema.key


def add_columns(sql: Sql, table: str, columns: Sequence[Column]) -> list[str]:
    """A statement each: databases write several columns in one statement in their own ways."""
    definitions = (f"{sql.quoted(column.name)} {sql.column_type(column, in_key=False)}" for column in columns)
    return [f"ALTER TABLE {sql.table(table)} ADD COLUMN {definition}" for definition in definitions]


def key_is_unique(schema: TableSchema) -> bool:
    """Whether the key can be a primary key, i.e. has no nullable columns; other keys get a plain index."""
    return bool(schema.key) and not any(schema.column(name).nullable for name in schema.key)


def create_control_table(sql: Sql, target_table: str) -> list[str]:
    """Idempotent statements."""
    quoted, name, text = sql.quoted, sql.short_text_type, sql.long_text_type
    columns = [
        f"{quoted('target_table')} {name} NOT NULL",
        f"{quoted('identity')} {name} NOT NULL",
        f"{quoted('replicator')} {name} NOT NULL",
        f"{quoted('source_table')} {text} NOT NULL",
        f"{quoted('fence')} {sql.integer_type} NOT NULL",
        f"{quoted('cursor_window')} {sql.integer_type} NOT NULL",
        f"{quoted('nonce')} {name} NOT NULL",
        *(f"{quoted(column)} {text} NOT NULL" for column in sql.record_columns),
        sql.primary_key.format(f"{quoted('target_table')}, {quoted('identity')}"),
    ]
    return sql.create_table(sql.control_table(target_table), columns, "", staging=False)
