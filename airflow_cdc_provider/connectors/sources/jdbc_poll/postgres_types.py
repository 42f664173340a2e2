"""Types of PostgreSQL. The text that the server prints of any other type is exact, under our settings."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from airflow_cdc_provider.connectors.sources.jdbc_poll import column_rules as rules
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Order, Rule, Select, Type
from airflow_cdc_provider.core.table.schema import Kind

RANGES: tuple[type[Type], ...] = (
    postgresql.INT4RANGE,
    postgresql.INT8RANGE,
    postgresql.NUMRANGE,
    postgresql.DATERANGE,
    postgresql.TSRANGE,
    postgresql.TSTZRANGE,
    postgresql.INT4MULTIRANGE,
    postgresql.INT8MULTIRANGE,
    postgresql.NUMMULTIRANGE,
    postgresql.DATEMULTIRANGE,
    postgresql.TSMULTIRANGE,
    postgresql.TSTZMULTIRANGE,
)

OF_EXTENSIONS = rules.value(Kind.TEXT, Select.TEXT, Order.NONE)
"""Their operators are in a schema that our sessions do not search."""

POSTGRESQL: Mapping[type[Type], Rule] = {
    postgresql.BOOLEAN: rules.BOOLEAN,
    postgresql.SMALLINT: rules.INT16,
    postgresql.INTEGER: rules.INT32,
    postgresql.BIGINT: rules.INT64,
    postgresql.NUMERIC: rules.number,
    postgresql.REAL: rules.FLOAT32,
    postgresql.FLOAT: rules.FLOAT64,
    postgresql.DOUBLE_PRECISION: rules.FLOAT64,
    postgresql.DATE: rules.DATE,
    postgresql.TIMESTAMP: rules.timestamp,
    postgresql.UUID: rules.UUID,
    postgresql.BYTEA: rules.BYTES,
    postgresql.JSON: rules.JSON,
    postgresql.JSONB: rules.JSON,
    postgresql.CHAR: rules.TEXT,
    postgresql.VARCHAR: rules.TEXT,
    postgresql.TEXT: rules.TEXT,
    postgresql.CITEXT: rules.value(Kind.TEXT, order=Order.NONE),
    sa.String: rules.TEXT,  # name, "char"
    **dict.fromkeys(RANGES, rules.CAST_TEXT),
    postgresql.ARRAY: rules.CAST_TEXT,
    postgresql.BIT: rules.CAST_TEXT,
    postgresql.CIDR: rules.CAST_TEXT,
    postgresql.DOMAIN: rules.CAST_TEXT,
    postgresql.ENUM: rules.CAST_TEXT,
    postgresql.HSTORE: OF_EXTENSIONS,
    postgresql.INET: rules.CAST_TEXT,
    postgresql.INTERVAL: rules.CAST_TEXT,
    postgresql.JSONPATH: rules.CAST_TEXT,
    postgresql.MACADDR: rules.CAST_TEXT,
    postgresql.MACADDR8: rules.CAST_TEXT,
    postgresql.MONEY: rules.value(Kind.TEXT, Select.TEXT, Order.NONE),
    postgresql.OID: rules.CAST_TEXT,
    postgresql.REGCLASS: rules.CAST_TEXT,
    postgresql.REGCONFIG: rules.CAST_TEXT,
    postgresql.TIME: rules.CAST_TEXT,
    postgresql.TSQUERY: rules.CAST_TEXT,
    postgresql.TSVECTOR: rules.CAST_TEXT,
    sa.types.NullType: OF_EXTENSIONS,  # composite types, too
}
