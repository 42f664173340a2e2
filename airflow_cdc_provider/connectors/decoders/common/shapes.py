"""Arrow types for messages of one shape, inferred from one of them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_cdc_provider.core.table.schema import Kind

FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})
BY_KIND: Mapping[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT16: pa.int64(),
    Kind.INT32: pa.int64(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float64(),
    Kind.FLOAT64: pa.float64(),
}
"""The type of a column that is null in the message; other kinds are strings."""


def column_type(value: Any, kind: Kind | None) -> pa.DataType:
    """``kind``: of the column; None if it is not copied. Raises TypeError as ``value_type``."""
    if value is None:
        return BY_KIND.get(kind or Kind.TEXT, pa.string())
    if kind in FLOATS and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return pa.float64()
    return value_type(value)


def value_type(value: Any) -> pa.DataType:
    """Raises TypeError for a value that no Arrow column stores exactly."""
    kind = {str: pa.string(), bool: pa.bool_(), int: pa.int64()}.get(type(value))
    if kind is None:
        raise TypeError(type(value))
    return kind


def count_struct_members(rows: pa.RecordBatch) -> int:
    """The number of members of the nested objects in a batch."""
    count: int = 0
    for field in rows.schema:
        if pa.types.is_struct(field.type):
            count += field.type.num_fields * (rows.num_rows - rows.column(field.name).null_count)
    return count
