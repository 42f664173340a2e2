"""Converts the cells of many messages at once to columns of canonical JSON texts.

The results equal those of ``types.converter``. Common forms of cells are converted by Arrow; a column with any other
cell goes through the converter. Raises NotVectorizable if a cell cannot be converted to a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.json_columns import quoted
from airflow_cdc_provider.connectors.sources.postgres.types import JSON_NUMBER, Converter, converters
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

Bytes = npt.NDArray[np.uint8]
Indexes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

QUOTE, BACKSLASH, MINUS, POINT, ZERO, NINE, SPACE = b'"\\-.09 '
TRUE, FALSE = b"tf"
SHORT_TIMESTAMP, LONG_TIMESTAMP = len("2024-05-06 07:08:09"), len("2024-05-06 07:08:09.123456")


class NotVectorizable(ValueError):
    """These messages must be read one by one."""


@dataclass(frozen=True)
class Cells:
    """One column: cell ``n`` is ``length[n]`` bytes of ``buffer`` from ``start[n]`` on, or NULL. The starts ascend. The
    buffer has at least LONG_TIMESTAMP bytes after the last cell."""

    buffer: Bytes
    start: Indexes
    length: Indexes
    null: Flags

    @cached_property
    def present(self) -> Indexes:
        """The cells that are not NULL."""
        return np.flatnonzero(~self.null)

    @cached_property
    def content(self) -> Bytes:
        """The bytes of all cells, concatenated."""
        _, offsets, content = self.binary.buffers()
        return np.frombuffer(content, np.uint8)[: np.frombuffer(offsets, np.int32)[len(self.length)]]

    @cached_property
    def binary(self) -> pa.BinaryArray:
        # Cells and the bytes between them are alternating elements of one array; the cells are taken from it.
        number = len(self.length)
        offsets = np.empty(2 * number + 1, np.int32)
        offsets[0:-1:2], offsets[1::2] = self.start, self.start + self.length
        offsets[-1] = len(self.buffer)
        spread = pa.BinaryArray.from_buffers(
            pa.binary(), 2 * number, [None, pa.py_buffer(offsets), pa.py_buffer(self.buffer)]
        )
        _, *cells = spread.take(pa.array(np.arange(0, 2 * number, 2))).buffers()
        return pa.BinaryArray.from_buffers(pa.binary(), number, [_valid(self.null), *cells])

    def byte_at(self, offset: int) -> Bytes:
        """One byte of each cell that is not NULL. A negative ``offset`` counts from the end of the cell."""
        index = self.start[self.present] + offset
        return self.buffer[index + self.length[self.present] if offset < 0 else index]

    def lengths(self) -> Indexes:
        return self.length[self.present]


def json_texts(schema: TableSchema, column: Column, cells: Cells) -> pa.StringArray:
    """One JSON text per cell, ``null`` for NULL. Raises NotVectorizable."""
    kind = schema.column(column.text_of or column.name).type.kind
    texts = _VECTORIZED[kind](cells) if kind in _VECTORIZED else None
    if texts is None:
        return _by_converter(converters(schema)[schema.columns.index(column)], cells)
    return pa.repeat(pa.scalar("null"), len(texts)) if column.text_of else pc.fill_null(texts, "null")


def _boolean(cells: Cells) -> pa.StringArray | None:
    letters = cells.byte_at(0)
    if (cells.lengths() != 1).any() or not np.isin(letters, (TRUE, FALSE)).all():
        return None
    return pc.if_else(pc.equal(cells.binary, b"t"), "true", "false")


def _integer(cells: Cells) -> pa.StringArray | None:
    """An optional minus and digits without leading zeros."""
    digits, lengths = cells.lengths().copy(), cells.lengths()
    negative = cells.byte_at(0) == MINUS
    digits[negative] -= 1
    first = np.where(negative, cells.byte_at(1), cells.byte_at(0))
    others = np.count_nonzero(~_is_digit(cells.content))
    if (digits < 1).any() or others != np.count_nonzero(negative) or ((first == ZERO) & (lengths > 1)).any():
        return None
    return cells.binary.cast(pa.string())


def _float(cells: Cells) -> pa.StringArray | None:
    """Finite numbers except -0, whose JSON text differs from its cell."""
    if not _is_ascii(cells):
        return None
    texts = cells.binary.cast(pa.string())
    if not _all(pc.match_substring_regex(texts, f"^{JSON_NUMBER.pattern}$")) or not _all(pc.not_equal(texts, "-0")):
        return None
    return texts if _all(pc.is_finite(texts.cast(pa.float64()))) else None


def _decimal(cells: Cells) -> pa.StringArray | None:
    return _quoted(cells) if (cells.lengths() > 0).all() and _is_digit(cells.byte_at(-1)).all() else None


def _date(cells: Cells) -> pa.StringArray | None:
    return _quoted(cells) if (cells.lengths() == len("2024-05-06")).all() else None


def _quoted(cells: Cells) -> pa.StringArray | None:
    """ASCII that needs no escapes."""
    if not _is_ascii(cells) or _needs_escapes(cells.content).any():
        return None
    return quoted(cells.binary.cast(pa.string()))


def _text(cells: Cells) -> pa.StringArray | None:
    try:
        texts = cells.binary.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise NotVectorizable("not UTF-8") from error
    special = _needs_escapes(cells.content)
    if special.any():
        if (cells.content[special] < SPACE).any():
            return None
        if (cells.content == BACKSLASH).any():
            texts = pc.replace_substring(texts, "\\", "\\\\")
        texts = pc.replace_substring(texts, '"', '\\"')
    return quoted(texts)


def _timestamp(cells: Cells) -> pa.StringArray | None:
    return _iso_times(cells, cells.length, b"")


def _timestamptz(cells: Cells) -> pa.StringArray | None:
    zone = [cells.byte_at(offset) for offset in (-3, -2, -1)]
    in_utc = (cells.lengths() > 3) & (zone[0] == ord("+")) & (zone[1] == ZERO) & (zone[2] == ZERO)
    return _iso_times(cells, np.where(cells.null, 0, cells.length - 3), b"Z") if in_utc.all() else None


def _iso_times(cells: Cells, length: Indexes, zone: bytes) -> pa.StringArray | None:
    """``2024-05-06 07:08:09[.123456]`` with a T; a fraction is padded to six digits."""
    start, long = cells.start[cells.present], length[cells.present]
    buffer = cells.buffer
    fraction = (long >= SHORT_TIMESTAMP + 2) & (long <= LONG_TIMESTAMP) & (buffer[start + 4] == MINUS)
    fraction &= (buffer[start + SHORT_TIMESTAMP] == POINT) & _is_digit(buffer[start + long - 1])
    if not (fraction | (long == SHORT_TIMESTAMP)).all() or not _is_ascii(cells) or _needs_escapes(cells.content).any():
        return None
    offsets = np.arange(LONG_TIMESTAMP)
    texts = np.where(offsets < long[:, None], buffer[start[:, None] + offsets], np.uint8(ZERO))
    texts[:, 10] = ord("T")
    padded = np.where(fraction, LONG_TIMESTAMP, SHORT_TIMESTAMP)
    lengths = np.zeros(len(cells.length), np.int64)
    lengths[cells.present] = padded
    array = _array(texts[offsets < padded[:, None]], lengths, cells.null).cast(pa.string())
    return quoted(array, zone.decode())


_VECTORIZED: dict[Kind, Callable[[Cells], pa.StringArray | None]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT16: _integer,
    Kind.INT32: _integer,
    Kind.INT64: _integer,
    Kind.FLOAT32: _float,
    Kind.FLOAT64: _float,
    Kind.DECIMAL: _decimal,
    Kind.TEXT: _text,
    Kind.JSON: _text,
    Kind.UUID: _quoted,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamptz,
}


def _by_converter(convert: Converter, cells: Cells) -> pa.StringArray:
    values = cells.binary.to_pylist()
    try:
        return pa.array(
            ("null" if value is None else convert(value.decode("latin-1")) for value in values), pa.string()
        )
    except (ValueError, IndexError, OverflowError) as error:
        raise NotVectorizable("a cell is not a value of its column's type") from error


def _array(content: Bytes, length: Indexes, null: Flags) -> pa.BinaryArray:
    offsets = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=offsets[1:])
    buffers = [_valid(null), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(length), buffers)


def _valid(null: Flags) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None


def _all(flags: pa.BooleanArray) -> bool:
    """NULL is ignored."""
    return pc.all(flags).as_py() is not False


def _is_digit(letters: Bytes) -> Flags:
    digits: Flags = (letters >= ZERO) & (letters <= NINE)
    return digits


def _is_ascii(cells: Cells) -> bool:
    return bool((cells.content < 0x80).all())


def _needs_escapes(letters: Bytes) -> Flags:
    special: Flags = (letters < SPACE) | (letters == QUOTE) | (letters == BACKSLASH)
    return special
