"""The identities of tables and their columns in the catalog: ``object_id``, ``column_id``, and their types. Pure."""

from __future__ import annotations

from airflow_cdc_provider.connectors.sources.sqlserver.catalog import CatalogTable
from airflow_cdc_provider.connectors.sources.sqlserver.types import CODE_PAGE_TEXTS, PRECISE_TIMES, SqlColumn
from airflow_cdc_provider.core.table.identity import ColumnIdentity, TableIdentity

INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Integer types print a value alike, so they count as one type of different lengths."""


def identity_of(table: CatalogTable) -> TableIdentity:
    """A ``column_id`` is never used again, and ``max_column_id_used`` counts dropped columns, too. Older rows may have
    a value in a new column that has a default or cannot be NULL."""
    columns = {column.name: _identity(column) for column in table.columns if not column.computed}
    return TableIdentity(f"{table.object_id} {table.created}", columns, table.last_number)


def _identity(column: SqlColumn) -> ColumnIdentity:
    """Another number of fractional digits of a second is another type: the server rounds."""
    name, length = column.type, None if column.length == -1 else column.length
    if name in INTEGERS:
        name, length = "integer", INTEGERS[name]
    elif name in ("decimal", "numeric"):
        name, length = f"decimal scale {column.scale}", column.precision
    elif name in PRECISE_TIMES:
        name, length = f"{name} {column.scale}", None
    elif name in CODE_PAGE_TEXTS:
        name = f"{name} {column.collation}"
    return ColumnIdentity(column.number, name, unknown_fill=column.filled, length=length)
