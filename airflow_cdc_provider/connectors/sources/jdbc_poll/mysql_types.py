"""Types of MySQL and MariaDB. Not copied: geometries and vectors, whose texts are no values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from airflow_cdc_provider.connectors.sources.jdbc_poll import column_rules as rules
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Order, Rule, Select, SourceType, Type
from airflow_cdc_provider.core.table.schema import Kind

REFLECTED: Mapping[str, type[Type]] = {
    name: kind for name in ("inet4", "inet6") if (kind := getattr(mysql, name.upper(), None)) is not None
}
"""Classes of MariaDB that SQLAlchemy has since 2.1, and does not reflect."""


def _unless_unsigned(signed: SourceType, unsigned: SourceType) -> Rule:
    def rule(kind: Any) -> SourceType:
        return unsigned if kind.unsigned else signed

    return rule


MYSQL: Mapping[type[Type], Rule] = {
    mysql.BOOLEAN: rules.BOOLEAN,
    mysql.TINYINT: rules.INT16,
    mysql.SMALLINT: _unless_unsigned(rules.INT16, rules.INT32),
    mysql.MEDIUMINT: rules.INT32,
    mysql.INTEGER: _unless_unsigned(rules.INT32, rules.INT64),
    mysql.BIGINT: _unless_unsigned(rules.INT64, rules.decimal(20, 0)),
    mysql.DECIMAL: rules.number,
    mysql.NUMERIC: rules.number,
    mysql.FLOAT: rules.FLOAT64,
    mysql.DOUBLE: rules.FLOAT64,
    mysql.REAL: rules.FLOAT64,
    mysql.DATE: rules.DATE,
    mysql.DATETIME: rules.TIMESTAMP,
    mysql.TIMESTAMP: rules.TIMESTAMPTZ,  # stored in UTC, and returned in the time zone of the session, which is UTC
    mysql.TIME: rules.CAST_TEXT,
    mysql.YEAR: rules.CAST_TEXT,
    mysql.CHAR: rules.TEXT,
    mysql.VARCHAR: rules.TEXT,
    mysql.NCHAR: rules.TEXT,
    mysql.NVARCHAR: rules.TEXT,
    mysql.TINYTEXT: rules.TEXT,
    mysql.TEXT: rules.TEXT,
    mysql.MEDIUMTEXT: rules.TEXT,
    mysql.LONGTEXT: rules.TEXT,
    # Sorted by their numbers, and compared by their texts.
    mysql.ENUM: rules.value(Kind.TEXT, order=Order.TEXT),
    mysql.SET: rules.value(Kind.TEXT, Select.TEXT, Order.TEXT),
    mysql.JSON: rules.JSON,
    mysql.BIT: rules.value(Kind.BYTES, Select.BYTES, Order.NONE),  # a number to SQLAlchemy
    mysql.BINARY: rules.BYTES,
    mysql.VARBINARY: rules.BYTES,
    mysql.TINYBLOB: rules.BYTES,
    mysql.BLOB: rules.BYTES,
    mysql.MEDIUMBLOB: rules.BYTES,
    mysql.LONGBLOB: rules.BYTES,
    sa.UUID: rules.UUID,
    **dict.fromkeys(REFLECTED.values(), rules.CAST_TEXT),
}
