"""Types of SQL Server, as for its change tables. Not copied: ``sql_variant``, ``json``, and CLR types (``hierarchyid``,
``geometry``, ``geography``). Tested without a server."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.dialects import mssql

from airflow_cdc_provider.connectors.sources.jdbc_poll import column_rules as rules
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Rule, SourceType, Type
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

MSSQL: Mapping[type[Type], Rule] = {
    mssql.BIT: rules.BOOLEAN,
    mssql.TINYINT: rules.INT16,
    mssql.SMALLINT: rules.INT16,
    mssql.INTEGER: rules.INT32,
    mssql.BIGINT: rules.INT64,
    mssql.DECIMAL: rules.number,
    mssql.NUMERIC: rules.number,
    mssql.MONEY: rules.decimal(19, 4),
    mssql.SMALLMONEY: rules.decimal(10, 4),
    mssql.REAL: rules.FLOAT32,
    mssql.FLOAT: rules.FLOAT64,
    mssql.DOUBLE_PRECISION: rules.FLOAT64,
    mssql.DATE: rules.DATE,
    mssql.SMALLDATETIME: rules.TIMESTAMP,
    mssql.DATETIME: rules.TIMESTAMP,
    mssql.DATETIME2: rules.TIMESTAMP,
    mssql.DATETIMEOFFSET: SourceType(LogicalType(Kind.TIMESTAMPTZ), binds_zone=True),
    mssql.TIME: rules.CAST_TEXT,
    mssql.CHAR: rules.TEXT,
    mssql.VARCHAR: rules.TEXT,
    mssql.TEXT: rules.TEXT,
    mssql.NCHAR: rules.TEXT,
    mssql.NVARCHAR: rules.TEXT,
    mssql.NTEXT: rules.TEXT,
    mssql.XML: rules.TEXT,
    mssql.UNIQUEIDENTIFIER: rules.UUID,
    mssql.BINARY: rules.BYTES,
    mssql.VARBINARY: rules.BYTES,
    mssql.IMAGE: rules.BYTES,
    mssql.TIMESTAMP: rules.BYTES,  # the catalog's name of rowversion
    mssql.ROWVERSION: rules.BYTES,
}
