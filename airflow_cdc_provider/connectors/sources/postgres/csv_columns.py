"""Converts the CSV of COPY to columns of a table's types.

NULL is an empty cell without quotes. ``select.value_sql`` determines the other forms: bytes are hexadecimal digits,
times are in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE_BYTES = 4 << 20
Line = bytes | bytearray | memoryview


class InvalidCells(ValueError):
    """``columns``: those with a value that is not of their type."""

    def __init__(self, columns: Iterable[str]) -> None:
        super().__init__("a cell is not a value of its column's type")
        self.columns = tuple(columns)


def csv_tables(lines: Iterable[Line], schema: TableSchema) -> Iterator[pa.Table]:
    """Each element of ``lines`` is one or more whole rows. Raises InvalidCells."""
    for content in _chunks(lines):
        yield csv_table(content, schema)


def csv_table(content: bytes, schema: TableSchema) -> pa.Table:
    import pyarrow as pa

    try:
        table = _read(content, schema, {column.name: _csv_type(column.type) for column in schema.columns})
    except pa.ArrowInvalid as error:
        raise InvalidCells(_invalid_columns(content, schema)) from error
    for index, column in enumerate(schema.columns):
        if column.type.kind is Kind.BYTES:
            table = table.set_column(index, column.name, pa.chunked_array(map(_decode_hex, table[column.name].chunks)))
    return table


def _read(content: bytes, schema: TableSchema, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Only the columns in ``types``, with these types."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(content),
        csv.ReadOptions(column_names=list(schema.names), block_size=len(content) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )


def _invalid_columns(content: bytes, schema: TableSchema) -> Iterator[str]:
    import pyarrow as pa

    for column in schema.columns:
        try:
            _read(content, schema, {column.name: _csv_type(column.type)})
        except pa.ArrowInvalid:
            yield column.name


def _chunks(lines: Iterable[Line]) -> Iterator[bytes]:
    chunk, size = list[Line](), 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if size >= AT_ONCE_BYTES:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


def _csv_type(kind: LogicalType) -> pa.DataType:
    import pyarrow as pa

    return pa.string() if kind.kind is Kind.BYTES else arrow_type(kind)


def _decode_hex(texts: pa.StringArray) -> pa.BinaryArray:
    """Two digits are one byte, so the offset of a value is half the offset of its text."""
    import numpy as np
    import pyarrow as pa

    texts = pa.concat_arrays([texts])  # a copy without offset, because the buffers are read from their start
    valid, offsets, digits = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1) // 2 if len(texts) else np.zeros(1, np.int32)
    content = bytes.fromhex(bytes(digits)[: 2 * int(starts[-1])].decode()) if digits is not None else b""
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(starts)), pa.py_buffer(content)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(texts), buffers, texts.null_count)
