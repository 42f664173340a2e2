"""The statements in the schema-change topic of a connector for MySQL or MariaDB. Pure.

A message contains the text of one statement, and the columns of its table after it. The earlier names of columns and
tables are in the text alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.debezium import positions
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectReader
from airflow_cdc_provider.connectors.decoders.debezium.table_ids import changed_table
from airflow_cdc_provider.connectors.mysql_statements.alter_table import (
    added_definitions,
    clauses_of,
    dropped_columns,
    renamed_columns,
)
from airflow_cdc_provider.connectors.mysql_statements.table_renames import altered_name, renames_of
from airflow_cdc_provider.connectors.mysql_statements.tokens import Token, tokenize
from airflow_cdc_provider.core.table.source_names import parts_of, table_name

CONNECTORS = frozenset({"mysql", "mariadb"})


@dataclass(frozen=True)
class TableStatement:
    """``position``: in the source, as in order keys. ``columns``: of ``table`` after the statement; None if it was
    dropped. ``previous``: the name of the table before the statement; None if the table is new, was read by a snapshot
    of the connector, or had a name that is unknown. ``renamed``: old → new name of columns, ``added``, ``dropped``:
    names of columns; as the text has them."""

    position: str
    table: str
    previous: str | None
    columns: tuple[str, ...] | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()


def payloads_of(messages: Iterable[Message]) -> Iterator[Any]:
    """Without messages that cannot be read."""
    reader = ConnectReader()
    for message in messages:
        with suppress(DecodeError):
            if message.value is not None and not message.reason:
                yield reader.read(message.value, message.topic, message.value_schema).payload


def read_statements(payloads: Iterable[Any]) -> list[TableStatement]:
    """``payloads``: of the messages, in their order. A restarted connector sends its last statements again: those are
    left out, and so is what cannot be read."""
    found: dict[tuple[Any, ...], list[TableStatement]] = {}
    for payload in payloads:
        if not isinstance(payload, dict) or not isinstance(source := payload.get("source"), dict):
            continue
        if source.get("connector") in CONNECTORS and isinstance(payload.get("ddl"), str):
            place = (source.get("file"), source.get("pos"), source.get("snapshot"), payload["ddl"])
            found.setdefault(place, list(_statements(payload)))
    return [statement for statements in found.values() for statement in statements]


def _statements(payload: Mapping[str, Any]) -> Iterator[TableStatement]:
    changes = payload.get("tableChanges")
    for change in changes if isinstance(changes, list) else ():
        try:
            yield _statement(payload, change)
        except (DecodeError, AttributeError, IndexError, KeyError, TypeError, ValueError):
            continue


def _statement(payload: Mapping[str, Any], change: Mapping[str, Any]) -> TableStatement:
    """Raises an error of any of these types if the message has another form."""
    table = changed_table("mysql", change)
    position = positions.mysql(payload["source"], None, "none", 0, False).at
    definition = change.get("table")
    columns = None if definition is None else tuple(str(column["name"]) for column in definition["columns"])
    if change.get("type") != "ALTER":
        return TableStatement(position, table, None, columns)
    tokens = tokenize(payload["ddl"])
    kind = tokens[0].word
    previous = _previous_name(tokens, table) if kind in ("ALTER", "RENAME") else table  # CREATE INDEX
    clauses = clauses_of(tokens) if kind == "ALTER" else ()
    added = frozenset(one[0].name for clause in clauses for one in added_definitions(clause))
    dropped = frozenset(dropped_columns(clauses))
    return TableStatement(position, table, previous, columns, dict(renamed_columns(clauses)), added, dropped)


def _previous_name(tokens: list[Token], table: str) -> str | None:
    """The message names the new database of a table, and not the one that names without a database belong to."""
    pairs = renames_of(tokens, "") if tokens[0].word == "RENAME" else [altered_name(tokens, "")]
    for before, after in filter(None, pairs):
        (database, name), (new_database, _) = parts_of(before), parts_of(after)
        if not database and new_database:
            return None
        return before if database else table_name(parts_of(table)[0], name)
    return table
