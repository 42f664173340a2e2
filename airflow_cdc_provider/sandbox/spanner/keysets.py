"""Sets of keys in requests, in the form in which rows are stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.struct_pb2 import Value

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.errors import invalid
from airflow_cdc_provider.sandbox.spanner.schema import SpannerTable
from airflow_cdc_provider.sandbox.spanner.storage import EVERYTHING, Key, Range
from airflow_cdc_provider.sandbox.spanner.values import Stored, size_of, sort_key, stored


def key_of(table: SpannerTable, values: Sequence[Value]) -> Key:
    """A whole key. Raises Refused."""
    if len(values) != len(table.key):
        raise invalid(f"Wrong number of key parts for {table.name}. Expected: {len(table.key)}. Got: {len(values)}.")
    return _prefix(table, values)


def stored_key(table: SpannerTable, found: Sequence[Stored]) -> Key:
    """Of stored values. Raises Refused."""
    size = sum(map(size_of, found))
    if size > limits.KEY_BYTES:
        raise invalid(f"Key size exceeds the limit of {limits.KEY_BYTES} bytes in table {table.name}: {size}.")
    return tuple(sort_key(value, column) for value, column in zip(found, table.key_columns, strict=False))


def ranges_of(table: SpannerTable, key_set: Any) -> list[Range]:
    """``key_set``: a message KeySet."""
    if key_set.all_:
        return [EVERYTHING]
    points = (key_of(table, key.values) for key in key_set.keys)
    return [*(Range(key, key) for key in points), *(_range(table, one) for one in key_set.ranges)]


def _range(table: SpannerTable, given: Any) -> Range:
    start, end = given.WhichOneof("start_key_type"), given.WhichOneof("end_key_type")
    if start is None or end is None:
        raise invalid("KeyRange must have a start and an end.")
    return Range(
        _prefix(table, getattr(given, start).values),
        _prefix(table, getattr(given, end).values),
        start == "start_open",
        end == "end_open",
    )


def _prefix(table: SpannerTable, values: Iterable[Any]) -> Key:
    pairs = zip(values, table.key_columns, strict=False)
    found = [None if value.HasField("null_value") else stored(value, column, "") for value, column in pairs]
    return stored_key(table, found)
