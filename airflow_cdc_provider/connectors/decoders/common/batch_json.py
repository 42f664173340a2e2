"""Thousands of JSON objects of one shape as Arrow columns, as strict as ``exact_json``.

Arrow's reader rejects invalid JSON, values of another type, unexpected members and duplicate names. A missing member is
detected by the number of members. Rejected objects are left to ``exact_json``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa
from pyarrow import json as arrow_json

from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable
from airflow_cdc_provider.connectors.decoders.common.exact_json import count_names
from airflow_cdc_provider.connectors.decoders.common.message import SMALL_BATCH

T = TypeVar("T")


def read_objects(
    values: Sequence[bytes], schema: pa.Schema, count_members: Callable[[pa.RecordBatch], int]
) -> pa.RecordBatch | None:
    """One row per value; None if a value has another shape. ``count_members``: the number of members in all rows.

    Values are joined by line feeds. No value can reach into the next one: a string contains no line feed, and an object
    does not continue with ``{`` after ``}``."""
    lines = b"\n".join(values)
    if not (lines.isascii() or is_utf8(lines)) or not _are_objects(lines, values):
        return None
    try:
        table = arrow_json.read_json(
            pa.BufferReader(lines),
            arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            arrow_json.ParseOptions(schema, unexpected_field_behavior="error"),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != len(values):
        return None
    (rows,) = table.combine_chunks().to_batches()
    return rows if count_members(rows) == count_names(lines, b'":', b"\\") else None


def decode_in_batches(
    items: Sequence[T], decode: Callable[[Sequence[T]], pa.RecordBatch | None]
) -> tuple[list[pa.RecordBatch], list[T]]:
    """The batches that ``decode`` returns, and the items to be decoded one by one. If ``decode`` returns None, each
    half is decoded separately; if it raises NotVectorizable, the remaining items are."""
    if len(items) <= SMALL_BATCH:
        return [], list(items)
    try:
        batch = decode(items)
    except NotVectorizable as error:
        rest = [item for index, item in enumerate(items) if index not in error.rows]
        batches, others = decode_in_batches(rest, decode)
        return batches, [*(items[index] for index in sorted(error.rows)), *others]
    except pa.ArrowException:  # an unforeseen value: decoding one by one gives the reason
        return [], list(items)
    if batch is not None:
        return [batch], []
    half = len(items) // 2
    first, second = decode_in_batches(items[:half], decode), decode_in_batches(items[half:], decode)
    return first[0] + second[0], first[1] + second[1]


def _are_objects(lines: bytes, values: Sequence[bytes]) -> bool:
    """Whether each value begins and ends with a brace. ``lines``: the values, joined by line feeds."""
    if lines.count(b"\n") == lines.count(b"}\n{") == len(values) - 1:
        return lines.startswith(b"{") and lines.endswith(b"}")
    return all(value.startswith(b"{") and value.endswith(b"}") for value in values)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
