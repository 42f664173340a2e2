"""Types of Oracle. Tested without a server.

Not copied: types whose values the driver does not return as such, and that Oracle does not cast to CLOB: intervals,
row ids, JSON, LONG, BFILE, vectors, XML, objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import oracle

from airflow_cdc_provider.connectors.sources.jdbc_poll import column_rules as rules
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Rule, Select, SourceType, Type
from airflow_cdc_provider.core.table.schema import MAX_DIGITS, Kind, LogicalType

BINARY_NUMBER = rules.value(Kind.TEXT, Select.NUMBER)
"""FLOAT, DOUBLE PRECISION and REAL are numbers of up to 38 decimal digits, which no floating-point number has."""


def _number(kind: Any) -> SourceType:
    """``scale`` < 0: digits before the point that are zero; ``scale`` > ``precision``: behind the point."""
    precision, scale = kind.precision, kind.scale or 0
    if precision is None:
        return rules.value(Kind.TEXT, Select.NUMBER)
    digits, behind = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    return rules.decimal(digits, behind) if digits <= MAX_DIGITS else rules.value(Kind.TEXT, Select.NUMBER)


def _timestamp(kind: Any) -> SourceType:
    """The driver drops the zone of a TIMESTAMP WITH TIME ZONE, so the server converts it. One WITH LOCAL TIME ZONE is
    returned in the time zone of the session, which is UTC, and compared with parameters in it."""
    if kind.timezone:
        return SourceType(LogicalType(Kind.TIMESTAMPTZ), Select.UTC)
    return rules.TIMESTAMPTZ if kind.local_timezone else rules.TIMESTAMP


ORACLE: Mapping[type[Type], Rule] = {
    oracle.NUMBER: _number,
    oracle.FLOAT: BINARY_NUMBER,
    oracle.DOUBLE_PRECISION: BINARY_NUMBER,
    oracle.REAL: BINARY_NUMBER,
    oracle.BINARY_FLOAT: rules.FLOAT32,
    oracle.BINARY_DOUBLE: rules.FLOAT64,
    oracle.DATE: rules.TIMESTAMP,  # it has a time of day
    oracle.TIMESTAMP: _timestamp,
    oracle.CHAR: rules.TEXT,
    oracle.VARCHAR: rules.TEXT,
    oracle.VARCHAR2: rules.TEXT,
    oracle.NCHAR: rules.TEXT,
    oracle.NVARCHAR: rules.TEXT,
    oracle.NVARCHAR2: rules.TEXT,
    oracle.CLOB: rules.TEXT,
    oracle.NCLOB: rules.TEXT,
    oracle.RAW: rules.BYTES,
    oracle.BLOB: rules.BYTES,
    oracle.BOOLEAN: rules.BOOLEAN,
    # SQLAlchemy's name of NUMBER(*, 0), which INTEGER is.
    sa.INTEGER: rules.decimal(MAX_DIGITS, 0),
}
