"""Tables as the schema-change topic tells them. Pure.

It tells the database's own types; how the connector then writes their values is a matter of its settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.debezium.native_types import semantic_of
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.semantics import logical_type
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import REGIMES
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
PARTS = {"mysql": 2, "mariadb": 2, "sqlserver": 3, "oracle": 2}
"""How many of the last parts of an id are the table's name here."""


def table_name(connector: str, change: Mapping[str, Any]) -> str:
    """From ``"db"."t"``; Oracle names the database first, which its topics do not."""
    told = change.get("id")
    parts = [part.replace('""', '"') for part in QUOTED.findall(told)] if isinstance(told, str) else []
    if not parts or ".".join(f'"{part}"' for part in QUOTED.findall(str(told))) != told:
        raise DecodeError(WRONG_VALUE, "a table change that does not name its table")
    return ".".join(parts[-PARTS.get(connector, 2) :])


def schema_of(table: str, connector: str, told: Mapping[str, Any], options: DebeziumOptions) -> TableSchema:
    columns, key = told.get("columns"), told.get("primaryKeyColumnNames") or []
    if not isinstance(columns, list) or not all(
        isinstance(c, dict) and isinstance(c.get("name"), str) for c in columns
    ):
        raise DecodeError(WRONG_VALUE, "a table change that does not tell columns")
    ordered = sorted(columns, key=lambda c: c["position"] if type(c.get("position")) is int else 0)
    names = {column["name"] for column in columns}
    if not isinstance(key, list) or not all(isinstance(name, str) and name in names for name in key):
        raise DecodeError(WRONG_VALUE, "a table change with a key of columns it does not have")
    return TableSchema(
        table,
        tuple(_column(connector, column, options) for column in ordered),
        tuple(key),
        REGIMES.get(connector, Regime.SINGLE),
    )


def _column(connector: str, told: Mapping[str, Any], options: DebeziumOptions) -> Column:
    """A type that nobody knows is text, as it comes."""
    semantic = semantic_of(connector, told, options)
    may_be_null = told.get("optional") is not False
    if semantic is None:
        return Column(told["name"], LogicalType(Kind.TEXT), may_be_null, str(told.get("typeExpression") or ""))
    return Column(told["name"], logical_type(semantic), may_be_null, str(semantic))
