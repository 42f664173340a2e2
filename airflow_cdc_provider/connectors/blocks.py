"""Change records in columns: a reader that decodes thousands of rows at once yields blocks instead of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from airflow_cdc_provider.core.log.change_records import FIELDS


@dataclass(frozen=True)
class Block:
    """Consecutive change records of one table, without control events. ``columns``: an Arrow batch of
    ``log_columns()``, in stream order."""

    table: str
    columns: Any

    @property
    def first_order_key(self) -> str:
        return str(self.columns.column("order_key")[0])


@lru_cache
def log_columns() -> Any:
    """The columns of the change log as an Arrow schema: the fields of ChangeRecord, in order."""
    import pyarrow as pa

    texts = pa.list_(pa.string())
    types = {
        "before_complete": pa.bool_(),
        "after_complete": pa.bool_(),
        "refetch": texts,
        "phase": pa.int8(),
        "tx_seq": pa.int64(),
        "commit_ts": pa.timestamp("us", tz="UTC"),
        "warnings": texts,
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in FIELDS])


def log_batch(values: Mapping[str, Any], rows: int) -> Any:
    """An Arrow batch of ``log_columns()``. ``values``: per column an array, or one value for all rows; NULL by
    default."""
    import pyarrow as pa

    schema = log_columns()
    columns = [
        value if isinstance(value := values.get(field.name), pa.Array) else _repeat(value, field.type, rows)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _repeat(value: Any, kind: Any, rows: int) -> Any:
    """Empty lists are built from offsets: ``pa.repeat`` is a hundred times slower for lists than for texts."""
    import pyarrow as pa

    if value is None:
        return pa.nulls(rows, kind)
    if value == []:
        offsets = pa.repeat(pa.scalar(0, pa.int32()), rows + 1)
        return pa.ListArray.from_arrays(offsets, pa.array([], kind.value_type), type=kind)
    return pa.repeat(pa.scalar(value, kind), rows)


COMMON: Mapping[str, Any] = {"refetch": [], "snapshot": "none", "warnings": []}
"""The usual values of columns in which few records have any other."""
