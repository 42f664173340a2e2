"""Arrow's types for the columns of a table. Arrow is imported on first use, because planning does not need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(kind: LogicalType) -> pa.DataType:
    import pyarrow as pa

    match kind.kind:
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.INT16:
            return pa.int16()
        case Kind.INT32:
            return pa.int32()
        case Kind.INT64:
            return pa.int64()
        case Kind.FLOAT32:
            return pa.float32()
        case Kind.FLOAT64:
            return pa.float64()
        case Kind.DECIMAL:
            return pa.decimal128(kind.precision, kind.scale)
        case Kind.BYTES:
            return pa.binary()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us")
        case Kind.TIMESTAMPTZ:
            return pa.timestamp("us", "UTC")
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return pa.string()


def arrow_schema(schema: TableSchema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(column.name, arrow_type(column.type)) for column in schema.columns])
