"""Sets of keys in requests, in the form in which rows are stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.struct_pb2 import Value

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.errors import invalid
from airflow_cdc_provider.sandbox.spanner.schema import SpannerTable
from airflow_cdc_provider.sandbox.spanner.storage import EVERYTHING, Key, Range
from airflow_cdc_provider.sandbox.spanner.values import size_of, sort_key, stored


def key_of(table: SpannerTable, values: Iterable[Value]) -> Key:
    """A whole key. Raises Refused."""
    found = list(values)
    if len(found) != len(table.key):
        raise invalid(f"Wrong number of key parts for {table.name}. Expected: {len(table.key)}. Got: {len(found)}.")
    return _prefix(table, found)


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
    size, key = 0, []
    for value, column in zip(values, table.key_columns, strict=False):
        found = None if value.WhichOneof("kind") == "null_value" else stored(value, column, "")
        size += size_of(found)
        key.append(sort_key(found, column))
    if size > limits.KEY_BYTES:
        raise invalid(f"Key size exceeds the limit of {limits.KEY_BYTES} bytes in table {table.name}: {size}.")
    return tuple(key)
