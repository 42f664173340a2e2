"""Rows as COPY writes them, CSV, as columns of a table's types.

NULL is the empty cell without quotes. Values that CSV has no form of its own for come as ``select.value_sql`` spells
them: bytes as hexadecimal digits, times in the zone UTC.
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


class NoneOfItsColumn(ValueError):
    """``columns``: those that hold a value which is none of their type."""

    def __init__(self, columns: Iterable[str]) -> None:
        super().__init__("a cell is none of its column")
        self.columns = tuple(columns)


def csv_tables(lines: Iterable[Line], schema: TableSchema) -> Iterator[pa.Table]:
    """``lines``: whole rows, one or more each. Raises NoneOfItsColumn."""
    for content in _joined(lines):
        yield csv_table(content, schema)


def csv_table(content: bytes, schema: TableSchema) -> pa.Table:
    import pyarrow as pa

    try:
        read = _read(content, schema, {column.name: _told_as(column.type) for column in schema.columns})
    except pa.ArrowInvalid as error:
        raise NoneOfItsColumn(_misfits(content, schema)) from error
    for at, column in enumerate(schema.columns):
        if column.type.kind is Kind.BYTES:
            read = read.set_column(at, column.name, pa.chunked_array(map(_unhexed, read[column.name].chunks)))
    return read


def _read(content: bytes, schema: TableSchema, told: Mapping[str, pa.DataType]) -> pa.Table:
    """Those columns that ``told`` names, of these types."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(content),
        csv.ReadOptions(column_names=list(schema.names), block_size=len(content) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=told,
            include_columns=list(told),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )


def _misfits(content: bytes, schema: TableSchema) -> Iterator[str]:
    import pyarrow as pa

    for column in schema.columns:
        try:
            _read(content, schema, {column.name: _told_as(column.type)})
        except pa.ArrowInvalid:
            yield column.name


def _joined(lines: Iterable[Line]) -> Iterator[bytes]:
    some, size = list[Line](), 0
    for line in lines:
        some.append(line)
        size += len(line)
        if size >= AT_ONCE_BYTES:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)


def _told_as(kind: LogicalType) -> pa.DataType:
    import pyarrow as pa

    return pa.string() if kind.kind is Kind.BYTES else arrow_type(kind)


def _unhexed(texts: pa.StringArray) -> pa.BinaryArray:
    """Two digits are a byte, so a value begins at half the place where its text begins."""
    import numpy as np
    import pyarrow as pa

    texts = pa.concat_arrays([texts])  # from the first byte of its buffers on
    valid, offsets, digits = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1) // 2 if len(texts) else np.zeros(1, np.int32)
    content = bytes.fromhex(bytes(digits)[: 2 * int(starts[-1])].decode()) if digits is not None else b""
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(starts)), pa.py_buffer(content)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(texts), buffers, texts.null_count)
