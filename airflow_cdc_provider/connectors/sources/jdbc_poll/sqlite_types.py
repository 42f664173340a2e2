"""Types of SQLite. A declared type is a hint only: integers have 64 bits whatever their name, and a decimal is a
floating-point number with at most 15 exact digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from airflow_cdc_provider.connectors.sources.jdbc_poll import column_rules as rules
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Order, Rule, Select, SourceType, Type
from airflow_cdc_provider.core.table.schema import Kind

EXACT_DIGITS = 15
TIMESTAMP = rules.value(Kind.TIMESTAMP, order=Order.NONE)
"""One moment has several texts."""


def _number(kind: Any) -> SourceType:
    if kind.precision and kind.precision <= EXACT_DIGITS:
        return rules.decimal(kind.precision, kind.scale or 0)
    return rules.value(Kind.TEXT, Select.REFUSED)


SQLITE: Mapping[type[Type], Rule] = {
    sqlite.BOOLEAN: rules.BOOLEAN,
    sqlite.SMALLINT: rules.INT64,
    sqlite.INTEGER: rules.INT64,
    sa.BIGINT: rules.INT64,
    sqlite.NUMERIC: _number,
    sqlite.DECIMAL: _number,
    sqlite.REAL: rules.FLOAT64,
    sqlite.FLOAT: rules.FLOAT64,
    sa.DOUBLE: rules.FLOAT64,
    sqlite.DATE: rules.DATE,
    sa.DATE: rules.DATE,
    sqlite.DATETIME: TIMESTAMP,
    sa.DATETIME: TIMESTAMP,
    sqlite.TIMESTAMP: TIMESTAMP,
    sqlite.TIME: rules.CAST_TEXT,
    sa.TIME: rules.CAST_TEXT,
    sqlite.CHAR: rules.TEXT,
    sqlite.VARCHAR: rules.TEXT,
    sqlite.TEXT: rules.TEXT,
    sa.NCHAR: rules.TEXT,
    sa.NVARCHAR: rules.TEXT,
    sqlite.JSON: rules.JSON,
    sqlite.BLOB: rules.BYTES,
}
