"""The queries that the stand-in answers, word by word. Any other query is refused, so that none is answered wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from airflow_cdc_provider.sandbox.spanner.database import Database
from airflow_cdc_provider.sandbox.spanner.errors import unimplemented
from airflow_cdc_provider.sandbox.spanner.schema import Schema, SpannerTable

Parameters = Mapping[str, str]
Rows = Iterator[tuple[str | None, ...]]

COUNT = re.compile(r"SELECT COUNT\((?:\*|`([A-Za-z]\w*)`)\) FROM `([A-Za-z]\w*)`")


@dataclass(frozen=True)
class Result:
    """``columns``: names and types."""

    columns: Mapping[str, str]
    rows: list[tuple[str | None, ...]]


def answer(database: Database, sql: str, parameters: Parameters, time: int) -> Result:
    """Raises Refused (UNIMPLEMENTED)."""
    text = " ".join(sql.split())
    schema = database.schema_at(time)
    if count := COUNT.fullmatch(text):
        return Result({"": "INT64"}, [(str(database.count(schema.table(count[2]), time, count[1] or "")),)])
    if text == "SELECT 1":
        return Result({"": "INT64"}, [("1",)])
    if text not in CATALOG:
        raise unimplemented(f"the stand-in does not answer this query: {text}")
    columns, select = CATALOG[text]
    return Result(dict.fromkeys(columns, "STRING"), list(select(schema, parameters)))


def _tables(schema: Schema, parameters: Parameters) -> Rows:
    for table in schema.tables.values():
        asked = table.name.lower() == parameters["table"].lower() or table.name == parameters["control"]
        if asked or table.name.startswith(parameters["prefix"]):
            marks = [check for check in table.checks if check.startswith(parameters["marker"])]
            yield from ((table.name, mark, None) for mark in marks)
            if not marks:
                yield table.name, None, None


def _columns(schema: Schema, parameters: Parameters) -> Rows:
    return ((column.name,) for table in _named(schema, parameters) for column in table.columns)


def _indexes(schema: Schema, parameters: Parameters) -> Rows:
    return ((index,) for table in _named(schema, parameters) for index in table.indexes)


def _privileges(schema: Schema, parameters: Parameters) -> Rows:
    return (grant for table in _named(schema, parameters) for grant in table.grants)


def _names(schema: Schema, parameters: Parameters) -> Rows:
    return ((table.name,) for table in schema.tables.values())


def _dialect(schema: Schema, parameters: Parameters) -> Rows:
    return ((value,) for name, value in schema.options.items() if name == "database_dialect")


def _named(schema: Schema, parameters: Parameters) -> list[SpannerTable]:
    return [table for key, table in schema.tables.items() if key == parameters["table"].lower()]


CATALOG: dict[str, tuple[tuple[str, ...], Callable[[Schema, Parameters], Rows]]] = {
    (
        "SELECT t.table_name, c.constraint_name, t.row_deletion_policy_expression FROM information_schema.tables AS t"
        " LEFT JOIN information_schema.table_constraints AS c ON c.table_schema = t.table_schema"
        " AND c.table_name = t.table_name AND STARTS_WITH(c.constraint_name, @marker)"
        " WHERE t.table_schema = '' AND t.table_type = 'BASE TABLE'"
        " AND (LOWER(t.table_name) = LOWER(@table) OR STARTS_WITH(t.table_name, @prefix) OR t.table_name = @control)"
    ): (("table_name", "constraint_name", "row_deletion_policy_expression"), _tables),
    "SELECT table_name FROM information_schema.tables WHERE table_schema = '' AND table_type = 'BASE TABLE'": (
        ("table_name",),
        _names,
    ),
    (
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
    ): (("column_name",), _columns),
    (
        "SELECT index_name FROM information_schema.indexes"
        " WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table) AND index_type = 'INDEX'"
    ): (("index_name",), _indexes),
    (
        "SELECT privilege_type, grantee FROM information_schema.table_privileges"
        " WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
    ): (("privilege_type", "grantee"), _privileges),
    "SELECT option_value FROM information_schema.database_options WHERE option_name = 'database_dialect'": (
        ("option_value",),
        _dialect,
    ),
}
