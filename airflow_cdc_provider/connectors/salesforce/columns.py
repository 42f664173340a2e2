"""Columns of text as the column types of a table. Pure.

What Arrow reads at once it reads; where it hesitates, over an exponent, a digit too many, a whole number with ``.0``,
the value goes the same way as one that came by REST or in an event.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.salesforce.unreadable import Unreadable
from airflow_cdc_provider.connectors.salesforce.values import WrongValue, from_text
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(kind: LogicalType) -> pa.DataType:
    import pyarrow as pa

    match kind.kind:
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.INT32:
            return pa.int32()
        case Kind.INT64:
            return pa.int64()
        case Kind.FLOAT64:
            return pa.float64()
        case Kind.DECIMAL:
            return pa.decimal128(kind.precision, kind.scale)
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMPTZ:
            return pa.timestamp("us", "UTC")
        case _:
            return pa.string()


def typed(texts: pa.Table, schema: TableSchema) -> pa.Table:
    """The table's columns in their types. Raises Unreadable where a value is none of its column's type."""
    import pyarrow as pa

    arrays = [_typed(texts[column.name], column) for column in schema.columns]
    return pa.table(arrays, schema=pa.schema([(c.name, arrow_type(c.type)) for c in schema.columns]))


def _typed(texts: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    import pyarrow as pa

    wanted = arrow_type(column.type)
    if wanted == pa.string():
        return texts
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array(_one_by_one(texts, column), pa.string()).cast(wanted)])


def _one_by_one(texts: pa.ChunkedArray, column: Column) -> list[Any]:
    """Canonical texts, which Arrow does read."""
    convert = from_text(column.type, lambda code: None)
    try:
        return [_bare(convert(text)) for text in texts.to_pylist()]
    except WrongValue as error:
        raise Unreadable(f"column {column.name}: {error}") from error


def _bare(value: str) -> str | None:
    parsed = json.loads(value, parse_float=str, parse_int=str)
    if isinstance(parsed, bool):
        return value
    return parsed if parsed is None else str(parsed)
