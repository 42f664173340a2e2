"""A new file of rows, and the action that names it."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store

GROUP_ROWS = 64 * 1024
"""Small groups: whoever looks for a key reads few of them."""

PREFIX = 32
"""Texts stand in statistics by so many characters, and a maximum that was cut is closed with the highest one."""
TIGHT = re.compile(r'"tightBounds"\s*:\s*(true|false)\s*,|,\s*"tightBounds"\s*:\s*(true|false)')
HIGHEST = "\U0010ffff"


def write_rows(store: Store, table: str, rows: pa.Table, measured: Sequence[str]) -> dict[str, Any]:
    """The ``add`` action of a new file. ``measured``: the columns that get statistics."""
    path = f"part-00000-{uuid.uuid4()}.c000.snappy.parquet"
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, compression="snappy", row_group_size=GROUP_ROWS, store_schema=False)
    written = content.getvalue().to_pybytes()
    store.write(f"{table}/{path}", written)
    return {
        "path": path,
        "partitionValues": {},
        "size": len(written),
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": _stats(rows, measured),
    }


def with_vector(add: dict[str, Any], descriptor: dict[str, Any]) -> dict[str, Any]:
    """The same file with rows marked deleted: its minima and maxima may be those of rows that are gone."""
    stats = TIGHT.sub("", str(add["stats"])).replace("{", '{"tightBounds":false,', 1)
    return {**add, "deletionVector": descriptor, "stats": stats, "dataChange": True}


def _stats(rows: pa.Table, measured: Sequence[str]) -> str:
    """Written by hand: decimals are numbers of many digits there."""
    minima, maxima, nulls = list[str](), list[str](), list[str]()
    for name in measured:
        column = rows[name]
        nulls.append(f"{json.dumps(name)}:{column.null_count}")
        spelled = _spelled(column.type)
        if spelled is None or column.null_count == len(column):
            continue
        low, high = pc.min_max(column).as_py().values()
        minima.append(f"{json.dumps(name)}:{spelled(low, False)}")
        maxima.append(f"{json.dumps(name)}:{spelled(high, True)}")
    parts = [f'"minValues":{{{",".join(minima)}}}', f'"maxValues":{{{",".join(maxima)}}}']
    return f'{{"numRecords":{len(rows)},{",".join(parts)},"nullCount":{{{",".join(nulls)}}},"tightBounds":true}}'


def _spelled(kind: pa.DataType) -> Callable[[Any, bool], str] | None:
    """How a minimum or maximum of this type is written; None where none is. Floats have none: what is no number has no
    place among them."""
    if pa.types.is_integer(kind):
        return lambda value, _: str(value)
    if pa.types.is_decimal(kind):
        return lambda value, _: _plain(value)
    if pa.types.is_date(kind):
        return lambda value, _: f'"{value.isoformat()}"'
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        return lambda value, _: f'"{value.replace(tzinfo=None).isoformat(timespec="microseconds")}{zone}"'
    if pa.types.is_string(kind):
        return _text
    return None


def _plain(value: Decimal) -> str:
    return format(value, "f")


def _text(value: str, high: bool) -> str:
    cut = value[:PREFIX] + (HIGHEST if high and len(value) > PREFIX else "")
    return json.dumps(cut, ensure_ascii=False)
