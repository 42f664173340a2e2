"""JSON objects of one shape, thousands at once, as Arrow columns, with the care of ``exact_json``.

Arrow's reader refuses what is no JSON, values of another type, members that nobody named, and names that come twice.
That a member is missing shows in how many there are. What it refuses is for ``exact_json`` to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa
from pyarrow import json as arrow_json

from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable
from airflow_cdc_provider.connectors.decoders.common.exact_json import names_in
from airflow_cdc_provider.connectors.decoders.common.message import FEW

T = TypeVar("T")


def read_objects(
    values: Sequence[bytes], schema: pa.Schema, members: Callable[[pa.RecordBatch], int]
) -> pa.RecordBatch | None:
    """One row for each value; None where one of them is of another shape. ``members``: how many there are in all these
    rows.

    Nothing reaches from one value into the next: strings hold no line feed, and behind a closing brace an object would
    not go on with an opening one."""
    lines = b"\n".join(values)
    if not (lines.isascii() or _is_utf8(lines)) or any(one[:1] != b"{" or one[-1:] != b"}" for one in values):
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
    return rows if members(rows) == names_in(lines, b'":', b"\\") else None


def in_pieces(
    some: Sequence[T], told: Callable[[Sequence[T]], pa.RecordBatch | None]
) -> tuple[list[pa.RecordBatch], list[T]]:
    """What ``told`` says of all of them; and those that have to be read one by one. Where it says None, it is asked of
    both halves; where it raises Odd, of the others."""
    if len(some) <= FEW:
        return [], list(some)
    try:
        found = told(some)
    except NotVectorizable as odd:
        batches, others = in_pieces([one for place, one in enumerate(some) if place not in odd.rows], told)
        return batches, [*(some[place] for place in sorted(odd.rows)), *others]
    except pa.ArrowException:  # something that nobody thought of: the single way tells what it means
        return [], list(some)
    if found is not None:
        return [found], []
    half = len(some) // 2
    first, second = in_pieces(some[:half], told), in_pieces(some[half:], told)
    return first[0] + second[0], first[1] + second[1]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
