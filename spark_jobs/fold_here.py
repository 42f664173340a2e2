"""The fold of a small and plain batch by this process: the last record of each key is its row.

Where any value asks for more than a plain conversion nothing is folded here: Spark folds the batch, or says what is
wrong with it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from airflow_cdc_provider.core.changes import CONTROL_OPERATIONS, Operation, canonical
from airflow_cdc_provider.core.merge import GONE, LIVE, OP, ORDER
from airflow_cdc_provider.core.tables import Kind, LogicalType, TableSchema
from airflow_cdc_provider.staging.log import ChangeLog
from airflow_cdc_provider.targets.sparksql.types import FLOATING
from spark_jobs.here import few, read_few
from spark_jobs.images import Images
from spark_jobs.log_slice import WindowSlice

COLUMNS = ["op", "key_before", "key", "after", "order_key"]
NO_CHANGES = pa.array(sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE)))
NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
UNUSUAL = (pa.ArrowInvalid, binascii.Error)
"""What reading a value raises that is not spelled as usual."""

BLOCK_BYTES = 4 << 20


@dataclass(frozen=True)
class PlainFold:
    """``after``: only records behind this order key count. ``ignore_deletes``: rows that go stay as they are."""

    images: Images
    after: str
    ignore_deletes: bool


def fold_here(log: ChangeLog, windows: Sequence[WindowSlice], fold: PlainFold) -> pa.Table | None:
    """Staged rows (see ``core.merge``) of records with whole images, of a table with a key; None where that is Spark's.
    Not for rows that may be held by two keys, nor for deletes that keep the row."""
    schema = fold.images.schema
    if any(set(schema.names) - set(one.names) for one in fold.images.schemas.values()):
        return None
    files = [file for window in windows for file in window.part.files]
    if not files or not few(sum(file.rows for file in files)):
        return None
    records = read_few(log.store, [file.path for file in files], COLUMNS)
    if records is None:
        return None
    records = _counted(records, fold)
    keys = _entry_keys(records)
    if keys.null_count:
        return None
    records = records.take(_last_of_each(keys, records["order_key"]))
    try:
        columns = _columns(records, schema)
    except UNUSUAL:
        return None
    gone = pc.equal(records["op"], Operation.DELETE.value)
    columns += [records["order_key"], pc.if_else(gone, GONE, LIVE)]
    return pa.table(columns, [*schema.names, ORDER, OP])


def _counted(records: pa.Table, fold: PlainFold) -> pa.Table:
    counts = pc.and_(pc.greater(records["order_key"], fold.after), pc.invert(pc.is_in(records["op"], NO_CHANGES)))
    if fold.ignore_deletes:
        counts = pc.and_(counts, pc.not_equal(records["op"], Operation.DELETE.value))
    return records.filter(counts)


def _entry_keys(records: pa.Table) -> pa.Array:
    """The key that each record is an entry of: where a row goes, the one it goes from."""
    gone = pc.equal(records["op"], Operation.DELETE.value)
    return pc.if_else(gone, records["key_before"], records["key"]).combine_chunks()


def _last_of_each(keys: pa.Array, order: pa.ChunkedArray) -> pa.Array:
    """The place of the last entry of each key."""
    keys = keys.dictionary_encode()
    in_order = pc.sort_indices(order).to_numpy()
    last = np.empty(len(keys.dictionary), np.int64)
    last[keys.indices.to_numpy()[in_order]] = in_order
    return pa.array(last)


def _columns(records: pa.Table, schema: TableSchema) -> list[pa.ChunkedArray]:
    """Raises one of UNUSUAL."""
    told = pa.schema([(column.name, _told_as(column.type)) for column in schema.columns])
    images = [
        _of_key(schema.key, key) if op == Operation.DELETE.value else after
        for op, key, after in zip(*(records[name].to_pylist() for name in ("op", "key_before", "after")), strict=True)
    ]
    if not images:
        return [pa.chunked_array([], _typed_as(column.type)) for column in schema.columns]
    read = pj.read_json(
        pa.BufferReader(_with_bare_words("\n".join(images), schema).encode()),
        pj.ReadOptions(block_size=max(BLOCK_BYTES, 4 * max(map(len, images)) + 2)),
        pj.ParseOptions(told, unexpected_field_behavior="ignore"),
    )
    return [_converted(read[column.name], column.type) for column in schema.columns]


def _of_key(names: Sequence[str], key: str) -> str:
    """All that is known of a row that is gone."""
    return canonical(dict(zip(names, json.loads(key), strict=True)))


def _with_bare_words(images: str, schema: TableSchema) -> str:
    """Floats that are no numbers, as Arrow reads them. Within a text the quotes of such a member have backslashes."""
    for column in schema.columns if any(f'"{word}"' in images for word in NO_NUMBERS) else ():
        if column.type.kind in FLOATING:
            for word in NO_NUMBERS:
                images = images.replace(f'{canonical(column.name)}:"{word}"', f"{canonical(column.name)}:{word}")
    return images


def _told_as(logical: LogicalType) -> pa.DataType:
    """What the JSON of a value is read as."""
    return _JSON.get(logical.kind, pa.string())


def _typed_as(logical: LogicalType) -> pa.DataType:
    if logical.kind is Kind.DECIMAL:
        return pa.decimal128(logical.precision, logical.scale)
    return _TYPES.get(logical.kind, pa.string())


def _converted(values: pa.ChunkedArray, logical: LogicalType) -> pa.ChunkedArray:
    if logical.kind is Kind.BYTES:
        return pa.chunked_array([_decoded(values.to_pylist())])
    return values.cast(_typed_as(logical))


def _decoded(texts: Sequence[str | None]) -> pa.Array:
    return pa.array([None if one is None else base64.b64decode(one, validate=True) for one in texts], pa.binary())


_JSON: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
}
_TYPES: dict[Kind, pa.DataType] = {
    **_JSON,
    Kind.BYTES: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
}
