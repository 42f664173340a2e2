"""Folds a small, plain batch in this process: the last record of each key is its row.

If any value requires more than a plain conversion, nothing is folded here: Spark folds the batch, or reports the error.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, Operation, canonical
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import GONE, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.types import FLOATING
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.duplicates import have_conflicts
from spark_jobs.runtime.memory_budget import is_small, read_small_files
from spark_jobs.windows.log_reader import WindowSlice

Numbers = npt.NDArray[np.int64]
COLUMNS = ["op", "key_before", "key", "after", "order_key"]
NON_ROW_OPERATIONS = pa.array(sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE)))
NON_FINITE = ("NaN", "Infinity", "-Infinity")
CONVERSION_ERRORS = (pa.ArrowInvalid, binascii.Error)
"""Errors of values in an unusual notation."""

BLOCK_BYTES = 4 << 20
PIECE_ROWS = 32 * 1024


@dataclass(frozen=True)
class LocalFold:
    """``after``: only records above this order key are folded. ``on_delete``: with ``soft``, a deleted row keeps the
    target's values, so the batch must contain no other change of it."""

    images: ImageColumns
    after: str
    on_delete: OnDelete


@contextlib.contextmanager
def fold_locally(log: ChangeLog, windows: Sequence[WindowSlice], fold: LocalFold) -> Iterator[pa.Table | None]:
    """Staged rows (see ``core.table.merge_plan``) of records with complete images, of a table with a key; None where
    Spark must fold them. Not for tables in which two rows may have one key. The memory stays reserved until the block
    ends."""
    with _read_small(log, windows, fold) as records:
        yield None if records is None else _fold(records, fold)


def _read_small(
    log: ChangeLog, windows: Sequence[WindowSlice], fold: LocalFold
) -> contextlib.AbstractContextManager[pa.Table | None]:
    schema = fold.images.schema
    if any(set(schema.names) - set(known.names) for known in fold.images.schemas.values()):
        return contextlib.nullcontext()
    files = [file for window in windows for file in window.part.files]
    if not files or not is_small(sum(file.rows for file in files)):
        return contextlib.nullcontext()
    return read_small_files(log.store, [file.path for file in files], COLUMNS)


def _fold(records: pa.Table, fold: LocalFold) -> pa.Table | None:
    schema = fold.images.schema
    records = _relevant(records, fold)
    keys = entry_keys(records)
    if keys.null_count:
        return None
    numbers = keys.dictionary_encode().indices.to_numpy()
    last, entries = last_of_each(numbers, records["order_key"])
    duplicates, originals = _duplicates(numbers, records["order_key"], last)
    if have_conflicts(records.take(duplicates), records.take(originals)):
        return None
    records = records.take(pa.array(last))
    deleted = pc.equal(records["op"], Operation.DELETE.value)
    if fold.on_delete is OnDelete.SOFT and entries[deleted.to_numpy()].max(initial=0) > 1:
        return None
    try:
        columns = _columns(records, schema)
    except CONVERSION_ERRORS:
        return None
    columns += [records["order_key"], pc.if_else(deleted, GONE, LIVE)]
    return pa.table(columns, [*schema.names, ORDER, OP])


def _relevant(records: pa.Table, fold: LocalFold) -> pa.Table:
    row_changes = pc.invert(pc.is_in(records["op"], NON_ROW_OPERATIONS))
    relevant = pc.and_(pc.greater(records["order_key"], fold.after), row_changes)
    if fold.on_delete is OnDelete.IGNORE:
        relevant = pc.and_(relevant, pc.not_equal(records["op"], Operation.DELETE.value))
    return records.filter(relevant)


def entry_keys(records: pa.Table) -> pa.Array:
    """The key of each record: of a delete, the key before it."""
    deleted = pc.equal(records["op"], Operation.DELETE.value)
    return pc.if_else(deleted, records["key_before"], records["key"]).combine_chunks()


def last_of_each(numbers: Numbers, order: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """The index of the last entry of each key, and the number of entries per key. ``numbers`` are the dictionary
    indices of the keys."""
    entries = np.bincount(numbers)
    in_order = pc.sort_indices(order).to_numpy()
    latest = np.zeros(len(entries), np.int64)
    np.maximum.at(latest, numbers[in_order], np.arange(len(numbers)))
    return in_order[latest], entries


def _duplicates(numbers: Numbers, order: pa.ChunkedArray, last: Numbers) -> tuple[pa.Array, pa.Array]:
    """Entries with the order key of the last one of their key; and those last ones."""
    earlier = np.flatnonzero(last[numbers] != np.arange(len(numbers)))
    others, lasts = pa.array(earlier), pa.array(last[numbers[earlier]])
    same = pc.equal(order.take(others), order.take(lasts))
    return others.filter(same), lasts.filter(same)


def _columns(records: pa.Table, schema: TableSchema) -> list[pa.ChunkedArray]:
    """Raises one of CONVERSION_ERRORS."""
    deleted = pc.equal(records["op"], Operation.DELETE.value).combine_chunks()
    keys = records["key_before"].filter(deleted).to_pylist()
    key_images = pa.array([_key_image(schema.key, key) for key in keys], pa.string())
    images = pc.replace_with_mask(records["after"].combine_chunks(), deleted, key_images)
    pieces = [_parse(images.slice(at, PIECE_ROWS), schema) for at in range(0, len(images), PIECE_ROWS)]
    parsed = pa.concat_tables(pieces) if pieces else _json_schema(schema).empty_table()
    return [_convert(parsed[column.name], column.type) for column in schema.columns]


def _parse(images: pa.StringArray, schema: TableSchema) -> pa.Table:
    if images.null_count:
        raise pa.ArrowInvalid("a row without an image")
    images = _unquote_non_finite(images, schema)
    longest = pc.max(pc.binary_length(images)).as_py()
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(images)], images), "\n")[0]
    parsed = pj.read_json(
        pa.BufferReader(lines.as_buffer()),
        pj.ReadOptions(block_size=max(BLOCK_BYTES, 2 * longest + 2)),
        pj.ParseOptions(_json_schema(schema), unexpected_field_behavior="ignore"),
    )
    if len(parsed) != len(images):
        raise pa.ArrowInvalid("an image that is more than one line")
    return parsed


def _json_schema(schema: TableSchema) -> pa.Schema:
    return pa.schema([(column.name, _JSON.get(column.type.kind, pa.string())) for column in schema.columns])


def _key_image(names: Sequence[str], key: str) -> str:
    """The image of a deleted row: its key columns."""
    return canonical(dict(zip(names, json.loads(key), strict=True)))


def _unquote_non_finite(images: pa.StringArray, schema: TableSchema) -> pa.StringArray:
    """Turns NaN and infinities into JSON literals, as Arrow reads them. Inside a string value the quotes around such a
    member are escaped, so it is not replaced."""
    for column in schema.columns:
        if column.type.kind in FLOATING:
            for word in NON_FINITE:
                name = canonical(column.name)
                images = pc.replace_substring(images, f'{name}:"{word}"', f"{name}:{word}")
    return images


def _convert(values: pa.ChunkedArray, logical: LogicalType) -> pa.ChunkedArray:
    if logical.kind is Kind.BYTES:
        return pa.chunked_array([_decode_base64(values.to_pylist())])
    return values.cast(arrow_type(logical))


def _decode_base64(texts: Sequence[str | None]) -> pa.Array:
    return pa.array([None if text is None else base64.b64decode(text, validate=True) for text in texts], pa.binary())


_JSON: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
}
