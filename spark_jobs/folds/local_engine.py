"""The fold of a small and plain batch by this process: the last record of each key is its row.

Where any value asks for more than a plain conversion nothing is folded here: Spark folds the batch, or says what is
wrong with it.
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
from spark_jobs.folds.duplicates import differ
from spark_jobs.runtime.memory_budget import few, read_few
from spark_jobs.windows.log_reader import WindowSlice

Numbers = npt.NDArray[np.int64]
COLUMNS = ["op", "key_before", "key", "after", "order_key"]
NO_CHANGES = pa.array(sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE)))
NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
UNUSUAL = (pa.ArrowInvalid, binascii.Error)
"""What reading a value raises that is not spelled as usual."""

BLOCK_BYTES = 4 << 20
PIECE_ROWS = 32 * 1024


@dataclass(frozen=True)
class FastPathFold:
    """``after``: only records behind this order key count. ``on_delete``: with ``soft`` a row that goes keeps what the
    target holds of it, so that nothing else may have happened to it in the batch."""

    images: ImageColumns
    after: str
    on_delete: OnDelete


@contextlib.contextmanager
def fold_locally(log: ChangeLog, windows: Sequence[WindowSlice], fold: FastPathFold) -> Iterator[pa.Table | None]:
    """Staged rows (see ``core.merge``) of records with whole images, of a table with a key; None where that is Spark's.
    Not for rows that may be held by two keys. Their memory is held until the block ends."""
    with _read_few(log, windows, fold) as records:
        yield None if records is None else _folded(records, fold)


def _read_few(
    log: ChangeLog, windows: Sequence[WindowSlice], fold: FastPathFold
) -> contextlib.AbstractContextManager[pa.Table | None]:
    schema = fold.images.schema
    if any(set(schema.names) - set(one.names) for one in fold.images.schemas.values()):
        return contextlib.nullcontext()
    files = [file for window in windows for file in window.part.files]
    if not files or not few(sum(file.rows for file in files)):
        return contextlib.nullcontext()
    return read_few(log.store, [file.path for file in files], COLUMNS)


def _folded(records: pa.Table, fold: FastPathFold) -> pa.Table | None:
    schema = fold.images.schema
    records = _counted(records, fold)
    keys = entry_keys(records)
    if keys.null_count:
        return None
    numbers = keys.dictionary_encode().indices.to_numpy()
    last, entries = last_of_each(numbers, records["order_key"])
    again, of = _is_duplicate(numbers, records["order_key"], last)
    if differ(records.take(again), records.take(of)):
        return None
    records = records.take(pa.array(last))
    gone = pc.equal(records["op"], Operation.DELETE.value)
    if fold.on_delete is OnDelete.SOFT and entries[gone.to_numpy()].max(initial=0) > 1:
        return None
    try:
        columns = _columns(records, schema)
    except UNUSUAL:
        return None
    columns += [records["order_key"], pc.if_else(gone, GONE, LIVE)]
    return pa.table(columns, [*schema.names, ORDER, OP])


def _counted(records: pa.Table, fold: FastPathFold) -> pa.Table:
    counts = pc.and_(pc.greater(records["order_key"], fold.after), pc.invert(pc.is_in(records["op"], NO_CHANGES)))
    if fold.on_delete is OnDelete.IGNORE:
        counts = pc.and_(counts, pc.not_equal(records["op"], Operation.DELETE.value))
    return records.filter(counts)


def entry_keys(records: pa.Table) -> pa.Array:
    """The key that each record is an entry of: where a row goes, the one it goes from."""
    gone = pc.equal(records["op"], Operation.DELETE.value)
    return pc.if_else(gone, records["key_before"], records["key"]).combine_chunks()


def last_of_each(numbers: Numbers, order: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """The place of the last entry of each key, and how many the key has. ``numbers`` stand for the keys."""
    entries = np.bincount(numbers)
    in_order = pc.sort_indices(order).to_numpy()
    latest = np.zeros(len(entries), np.int64)
    np.maximum.at(latest, numbers[in_order], np.arange(len(numbers)))
    return in_order[latest], entries


def _is_duplicate(numbers: Numbers, order: pa.ChunkedArray, last: Numbers) -> tuple[pa.Array, pa.Array]:
    """Entries that stand where the last one of their key does; and those last ones."""
    earlier = np.flatnonzero(last[numbers] != np.arange(len(numbers)))
    others, lasts = pa.array(earlier), pa.array(last[numbers[earlier]])
    same = pc.equal(order.take(others), order.take(lasts))
    return others.filter(same), lasts.filter(same)


def _columns(records: pa.Table, schema: TableSchema) -> list[pa.ChunkedArray]:
    """Raises one of UNUSUAL."""
    gone = pc.equal(records["op"], Operation.DELETE.value).combine_chunks()
    keys = pa.array([_of_key(schema.key, key) for key in records["key_before"].filter(gone).to_pylist()], pa.string())
    images = pc.replace_with_mask(records["after"].combine_chunks(), gone, keys)
    pieces = [_read(images.slice(at, PIECE_ROWS), schema) for at in range(0, len(images), PIECE_ROWS)]
    read = pa.concat_tables(pieces) if pieces else _told_as_json(schema).empty_table()
    return [_converted(read[column.name], column.type) for column in schema.columns]


def _read(images: pa.StringArray, schema: TableSchema) -> pa.Table:
    if images.null_count:
        raise pa.ArrowInvalid("a row without an image")
    images = _with_bare_words(images, schema)
    longest = pc.max(pc.binary_length(images)).as_py()
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(images)], images), "\n")[0]
    read = pj.read_json(
        pa.BufferReader(lines.as_buffer()),
        pj.ReadOptions(block_size=max(BLOCK_BYTES, 2 * longest + 2)),
        pj.ParseOptions(_told_as_json(schema), unexpected_field_behavior="ignore"),
    )
    if len(read) != len(images):
        raise pa.ArrowInvalid("an image that is more than one line")
    return read


def _told_as_json(schema: TableSchema) -> pa.Schema:
    return pa.schema([(column.name, _JSON.get(column.type.kind, pa.string())) for column in schema.columns])


def _of_key(names: Sequence[str], key: str) -> str:
    """All that is known of a row that is gone."""
    return canonical(dict(zip(names, json.loads(key), strict=True)))


def _with_bare_words(images: pa.StringArray, schema: TableSchema) -> pa.StringArray:
    """Floats that are no numbers, as Arrow reads them. Within a text the quotes of such a member have backslashes."""
    for column in schema.columns:
        if column.type.kind in FLOATING:
            for word in NO_NUMBERS:
                name = canonical(column.name)
                images = pc.replace_substring(images, f'{name}:"{word}"', f"{name}:{word}")
    return images


def _converted(values: pa.ChunkedArray, logical: LogicalType) -> pa.ChunkedArray:
    if logical.kind is Kind.BYTES:
        return pa.chunked_array([_decoded(values.to_pylist())])
    return values.cast(arrow_type(logical))


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
