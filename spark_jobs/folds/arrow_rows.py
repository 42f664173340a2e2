"""Folded rows (``fold.ROWS``) as rows to merge, by Arrow: only values that are spelled as usual.

Other spellings are left to Spark, whose casts define what a text means (``typed_rows``).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.table.merge_plan import KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.sparksql.types import FLOATING
from spark_jobs.folds.json_members import key_image

NON_FINITE = ("NaN", "Infinity", "-Infinity")
CONVERSION_ERRORS = (pa.ArrowInvalid, binascii.Error)
"""Raised by a value that is not spelled as usual."""

BLOCK_BYTES = 4 << 20
PIECE_ROWS = 32 * 1024


def arrow_rows(folded: pa.Table, schema: TableSchema, partial: bool) -> pa.Table:
    """Raises one of CONVERSION_ERRORS where a value is not spelled as usual."""
    columns = typed_arrays(folded["image"], schema)
    known = [folded["known"]] if partial else []
    names = [*schema.names, ORDER, OP, *([KNOWN] if partial else [])]
    return pa.table([*columns, folded["order_key"], folded["op"], *known], names)


def typed_arrays(images: pa.ChunkedArray, schema: TableSchema) -> list[pa.ChunkedArray]:
    """The columns of these row images; NULL where an image lacks one. Raises one of CONVERSION_ERRORS."""
    images = images.combine_chunks()
    pieces = [_read(images.slice(at, PIECE_ROWS), schema) for at in range(0, len(images), PIECE_ROWS)]
    read = pa.concat_tables(pieces) if pieces else _json_schema(schema).empty_table()
    return [_converted(read[column.name], column.type) for column in schema.columns]


def key_arrays(keys: Sequence[str], schema: TableSchema) -> list[pa.ChunkedArray]:
    """The columns of these canonical keys. Raises one of CONVERSION_ERRORS."""
    images = [key_image(schema.key, key) for key in keys]
    columns = replace(schema, columns=tuple(map(schema.column, schema.key)))
    return typed_arrays(pa.chunked_array([pa.array(images, pa.string())]), columns)


def _read(images: pa.StringArray, schema: TableSchema) -> pa.Table:
    if images.null_count:
        raise pa.ArrowInvalid("a row without an image")
    images = _with_bare_words(images, schema)
    longest = pc.max(pc.binary_length(images)).as_py()
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(images)], images), "\n")[0]
    read = pj.read_json(
        pa.BufferReader(lines.as_buffer()),
        pj.ReadOptions(block_size=max(BLOCK_BYTES, 2 * longest + 2)),
        pj.ParseOptions(_json_schema(schema), unexpected_field_behavior="ignore"),
    )
    if len(read) != len(images):
        raise pa.ArrowInvalid("an image that is more than one line")
    return read


def _json_schema(schema: TableSchema) -> pa.Schema:
    return pa.schema([(column.name, _JSON.get(column.type.kind, pa.string())) for column in schema.columns])


def _with_bare_words(images: pa.StringArray, schema: TableSchema) -> pa.StringArray:
    """Floats that are no numbers, as Arrow reads them. Within a text the quotes of such a member have backslashes."""
    for column in schema.columns:
        if column.type.kind in FLOATING:
            for word in NON_FINITE:
                name = canonical(column.name)
                images = pc.replace_substring(images, f'{name}:"{word}"', f"{name}:{word}")
    return images


def _converted(values: pa.ChunkedArray, logical: LogicalType) -> pa.ChunkedArray:
    if logical.kind is Kind.BYTES:
        return pa.chunked_array([_decoded(values.to_pylist())])
    return values.cast(arrow_type(logical))


def _decoded(texts: Sequence[str | None]) -> pa.Array:
    return pa.array([None if text is None else base64.b64decode(text, validate=True) for text in texts], pa.binary())


_JSON: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
}
