"""What Arrow's reader is told of the values of messages that look alike, as one of them shows."""

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
"""Others are texts where the message shows nothing else."""


def column_type(value: Any, kind: Kind | None) -> pa.DataType:
    """``kind``: of the column; None where it is not copied. Raises TypeError for what no column holds exactly."""
    if value is None:
        return BY_KIND.get(kind or Kind.TEXT, pa.string())
    if kind in FLOATS and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return pa.float64()
    return value_type(value)


def value_type(value: Any) -> pa.DataType:
    """Raises TypeError likewise."""
    found = {str: pa.string(), bool: pa.bool_(), int: pa.int64()}.get(type(value))
    if found is None:
        raise TypeError(type(value))
    return found


def members_of_structs(rows: pa.RecordBatch) -> int:
    """How many members the objects within the objects of a batch have."""
    found: int = 0
    for field in rows.schema:
        if pa.types.is_struct(field.type):
            found += field.type.num_fields * (rows.num_rows - rows.column(field.name).null_count)
    return found
