"""Table schemas from the schema-change topic. Pure.

The topic contains the database's types; how the connector writes their values depends on its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.debezium.native_types import semantic_of
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.semantics import logical_type
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import REGIMES
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema


def schema_of(table: str, connector: str, definition: Mapping[str, Any], options: DebeziumOptions) -> TableSchema:
    columns, key = definition.get("columns"), definition.get("primaryKeyColumnNames") or []
    if not isinstance(columns, list) or not all(
        isinstance(c, dict) and isinstance(c.get("name"), str) for c in columns
    ):
        raise DecodeError(WRONG_VALUE, "a table change without valid columns")
    ordered = sorted(columns, key=lambda c: c["position"] if type(c.get("position")) is int else 0)
    names = {column["name"] for column in columns}
    if not isinstance(key, list) or not all(isinstance(name, str) and name in names for name in key):
        raise DecodeError(WRONG_VALUE, "a table change whose key columns are not among its columns")
    return TableSchema(
        table,
        tuple(_column(connector, column, options) for column in ordered),
        tuple(key),
        REGIMES.get(connector, Regime.SINGLE),
    )


def _column(connector: str, column: Mapping[str, Any], options: DebeziumOptions) -> Column:
    """Values of an unknown type are kept as text."""
    semantic = semantic_of(connector, column, options)
    nullable = column.get("optional") is not False
    if semantic is None:
        return Column(column["name"], LogicalType(Kind.TEXT), nullable, str(column.get("typeExpression") or ""))
    return Column(column["name"], logical_type(semantic), nullable, str(semantic))
