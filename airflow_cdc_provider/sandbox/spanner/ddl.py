"""Schema changes: the statements that the target and its tests need. Any other statement is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.errors import already_exists, failed_precondition, invalid, not_found
from airflow_cdc_provider.sandbox.spanner.schema import Schema, SpannerColumn, SpannerTable
from airflow_cdc_provider.sandbox.spanner.tokens import Words

SCALARS = frozenset({"BOOL", "INT64", "FLOAT32", "FLOAT64", "NUMERIC", "STRING", "BYTES", "DATE", "TIMESTAMP", "JSON"})
NOT_IN_KEY = frozenset({"JSON", "FLOAT32"})
WITH_LENGTH = frozenset({"STRING", "BYTES"})

numbers = count(1)


def apply(schema: Schema, statement: str) -> Schema:
    """The schema after a statement. Raises Refused."""
    words = Words(statement)
    for keywords, change in STATEMENTS.items():
        if words.take(*keywords):
            changed = change(schema, words)
            words.end()
            return changed
    raise words.refusal()


def _create_table(schema: Schema, words: Words) -> Schema:
    optional = words.take("IF", "NOT", "EXISTS")
    name = words.name()
    columns, checks = list[SpannerColumn](), dict[str, str]()
    words.expect("(")
    while not words.take(")"):
        if words.take("CONSTRAINT"):
            constraint = words.name()
            words.expect("CHECK", "(")
            checks[constraint] = words.name()
            words.expect("IS", "NOT", "NULL", ")")
        else:
            columns.append(_column(name, words))
        if not words.take(",") and not words.next_is(")"):
            raise words.refusal()
    words.expect("PRIMARY", "KEY")
    key = words.names()
    if schema.has(name):
        if optional:
            return schema
        raise already_exists(f"Duplicate name in schema: {name}.")
    for constraint in checks:
        if schema.has(constraint):
            raise already_exists(f"Duplicate name in schema: {constraint}.")
    table = SpannerTable(next(numbers), name, tuple(columns), key, checks)
    _require_valid(table)
    return schema.with_table(table)


def _column(table: str, words: Words) -> SpannerColumn:
    name = words.name()
    is_array = words.take("ARRAY", "<")
    kind = words.name().upper()
    if kind not in SCALARS:
        raise words.refusal()
    length = None
    if kind in WITH_LENGTH:
        words.expect("(")
        length = None if words.take("MAX") else words.number()
        words.expect(")")
    if is_array:
        words.expect(">")
    not_null, commit_timestamp = words.take("NOT", "NULL"), False
    if words.take("OPTIONS", "("):
        words.expect("allow_commit_timestamp", "=", "true", ")")
        commit_timestamp = True
    return SpannerColumn(table, name, kind, length, not_null, is_array, commit_timestamp)


def _require_valid(table: SpannerTable) -> None:
    names = [column.name.lower() for column in table.columns]
    if len(set(names)) < len(names):
        raise invalid(f"Duplicate column name in table {table.name}.")
    if len(names) > limits.TABLE_COLUMNS or len(table.key) > limits.KEY_COLUMNS:
        raise invalid(f"Table {table.name} has too many columns.")
    for column in table.key_columns:
        if column.type in NOT_IN_KEY or column.is_array:
            raise invalid(f"Column {column.name} of type {column.type} cannot be part of the primary key.")
    for checked in table.checks.values():
        table.column(checked)


def _drop_table(schema: Schema, words: Words) -> Schema:
    optional = words.take("IF", "EXISTS")
    name = words.name()
    if optional and name.lower() not in schema.tables:
        return schema
    table = schema.table(name)
    if table.indexes:
        raise failed_precondition(f"Cannot drop table {table.name} with indices: {', '.join(table.indexes)}.")
    if table.grants:
        raise failed_precondition(f"Cannot drop table {table.name}: it has fine-grained access control privileges.")
    schema.require_no_view(name)
    return schema.without_table(name)


def _alter_table(schema: Schema, words: Words) -> Schema:
    table = schema.table(words.name())
    words.expect("ADD", "COLUMN")
    column = _column(table.name, words)
    if column.not_null:
        raise invalid(f"Cannot add NOT NULL column {table.name}.{column.name} to existing table {table.name}.")
    changed = replace(table, columns=(*table.columns, column))
    _require_valid(changed)
    return schema.with_table(changed)


def _rename_tables(schema: Schema, words: Words) -> Schema:
    """All renames of a statement are one change."""
    pairs = [_rename(words)]
    while words.take(","):
        pairs.append(_rename(words))
    for old, new in pairs:
        table = schema.table(old)
        schema.require_no_view(old)
        schema = schema.without_table(old)
        if schema.has(new):
            raise already_exists(f"Duplicate name in schema: {new}.")
        columns = tuple(replace(column, table=new) for column in table.columns)
        schema = schema.with_table(replace(table, name=new, columns=columns))
    return schema


def _rename(words: Words) -> tuple[str, str]:
    old = words.name()
    words.expect("TO")
    return old, words.name()


def _create_index(schema: Schema, words: Words) -> Schema:
    index = words.name()
    words.expect("ON")
    table = schema.table(words.name())
    for column in words.names():
        table.column(column)
    if schema.has(index):
        raise already_exists(f"Duplicate name in schema: {index}.")
    return schema.with_table(replace(table, indexes=(*table.indexes, index)))


def _drop_index(schema: Schema, words: Words) -> Schema:
    optional, index = words.take("IF", "EXISTS"), words.name()
    for table in schema.tables.values():
        if index in table.indexes:
            return schema.with_table(replace(table, indexes=tuple(one for one in table.indexes if one != index)))
    if optional:
        return schema
    raise not_found(f"Index not found: {index}")


def _create_view(schema: Schema, words: Words) -> Schema:
    view = words.name()
    words.expect("SQL", "SECURITY", "INVOKER", "AS")
    match = re.search(r"FROM ([A-Za-z]\w*)", words.rest(), re.IGNORECASE)
    if match is None:
        raise words.refusal()
    return replace(schema, views={**schema.views, view.lower(): schema.table(match[1]).name.lower()})


def _drop_view(schema: Schema, words: Words) -> Schema:
    name = words.name().lower()
    return replace(schema, views={view: table for view, table in schema.views.items() if view != name})


def _create_role(schema: Schema, words: Words) -> Schema:
    return replace(schema, roles=schema.roles | {words.name()})


def _grant(schema: Schema, words: Words) -> Schema:
    table, grant = _privilege(schema, words, "TO")
    return schema.with_table(replace(table, grants=(*table.grants, grant)))


def _revoke(schema: Schema, words: Words) -> Schema:
    table, grant = _privilege(schema, words, "FROM")
    return schema.with_table(replace(table, grants=tuple(one for one in table.grants if one != grant)))


def _privilege(schema: Schema, words: Words, preposition: str) -> tuple[SpannerTable, tuple[str, str]]:
    privilege = words.name().upper()
    words.expect("ON", "TABLE")
    table = schema.table(words.name())
    words.expect(preposition, "ROLE")
    role = words.name()
    if role not in schema.roles:
        raise not_found(f"Role not found: {role}")
    return table, (privilege, role)


def _alter_database(schema: Schema, words: Words) -> Schema:
    words.name()
    words.expect("SET", "OPTIONS", "(")
    option = words.name()
    words.expect("=")
    value = words.text()
    words.expect(")")
    return replace(schema, options={**schema.options, option: value})


STATEMENTS: dict[tuple[str, ...], Callable[[Schema, Words], Schema]] = {
    ("CREATE", "TABLE"): _create_table,
    ("DROP", "TABLE"): _drop_table,
    ("ALTER", "TABLE"): _alter_table,
    ("RENAME", "TABLE"): _rename_tables,
    ("CREATE", "INDEX"): _create_index,
    ("DROP", "INDEX"): _drop_index,
    ("CREATE", "VIEW"): _create_view,
    ("DROP", "VIEW"): _drop_view,
    ("CREATE", "ROLE"): _create_role,
    ("GRANT",): _grant,
    ("REVOKE",): _revoke,
    ("ALTER", "DATABASE"): _alter_database,
}
