"""Thousands of Avro records of one schema as Arrow columns, field by field instead of record by record.

Their values are those of ``connect_avro``: integers, floating-point numbers (a float32 as the shortest number that
equals it), booleans, and texts, with bytes as base64. The records are in one array of bytes, one after another, and
each has a position in it. A field is read in all records at once, which moves their positions behind it. Arrays, maps
and recursive types are not supported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_cdc_provider.connectors.decoders.common.batch_json import is_utf8
from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable
from airflow_cdc_provider.connectors.decoders.common.connect_avro import shortest_float32
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of

Rows = npt.NDArray[np.int64]
"""Indexes of records, ascending."""
MAX_FIELDS = 4_000
PADDING = bytes(10 * MAX_FIELDS)
"""Numbers, of at most ten bytes, may be read beyond the end of a damaged record, which is detected afterwards."""
MAX_SHIFT = 63
MAX_RECORD_BYTES = 1 << 15
"""Longer records are not read together: the texts of all records must fit into one array."""


class Records:
    """``at``: the position of each record, ``ends``: of their ends."""

    def __init__(self, contents: Sequence[bytes]) -> None:
        joined = b"".join([*contents, PADDING])
        self.data = np.frombuffer(joined, np.uint8)
        self.buffer = pa.py_buffer(joined)
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        self.ends = np.cumsum(lengths)
        self.at = self.ends - lengths

    def numbers(self, rows: Rows) -> npt.NDArray[np.int64]:
        """A zigzag number of variable length per row. Raises NotVectorizable."""
        at = self.at[rows]
        byte = self.data[at]
        at += 1
        values = byte & np.uint64(0x7F)
        more, shift = byte >= 0x80, 7
        while more.any():
            if shift > MAX_SHIFT:
                raise NotVectorizable(rows[more].tolist())
            if more.all():  # most numbers of a column have the same length
                byte = self.data[at]
                at += 1
                values |= (byte & np.uint64(0x7F)) << np.uint64(shift)
                more = byte >= 0x80
            else:
                active = np.flatnonzero(more)
                byte = self.data[at[active]]
                at[active] += 1
                values[active] |= (byte & np.uint64(0x7F)) << np.uint64(shift)
                more[active] = byte >= 0x80
            shift += 7
        self.at[rows] = at
        numbers: npt.NDArray[np.int64] = (values >> np.uint64(1)).view(np.int64)
        numbers ^= -(values & np.uint64(1)).view(np.int64)
        return numbers

    def texts(self, rows: Rows) -> pa.BinaryArray:
        """Bytes of variable length per row. Raises NotVectorizable."""
        return self._slices(rows, self.numbers(rows))

    def blocks(self, rows: Rows, size: int) -> pa.BinaryArray:
        """``size`` bytes per row. Raises NotVectorizable."""
        return self._slices(rows, np.full(len(rows), size, np.int64))

    def columns(self, rows: Rows, size: int) -> npt.NDArray[np.uint8]:
        """``size`` bytes per row, as an array with one line per row."""
        at = self.at[rows]
        self.at[rows] = at + size
        found: npt.NDArray[np.uint8] = self.data[at[:, None] + np.arange(size)]
        return found

    def _slices(self, rows: Rows, lengths: npt.NDArray[np.int64]) -> pa.BinaryArray:
        """Every other element of an array without gaps: those between them are what lies between the slices."""
        at = self.at[rows]
        ends = at + lengths
        invalid = (lengths < 0) | (ends > self.ends[rows])
        if invalid.any():
            raise NotVectorizable(rows[invalid].tolist())
        self.at[rows] = ends
        offsets = np.empty(2 * len(rows) + 1, np.int32)
        offsets[:-1:2], offsets[1::2] = at, ends
        offsets[-1] = offsets[-2] if len(rows) else 0
        all_slices = pa.Array.from_buffers(pa.binary(), 2 * len(rows), [None, pa.py_buffer(offsets), self.buffer])
        return all_slices.take(pa.array(np.arange(0, 2 * len(rows), 2)))


@dataclass(frozen=True)
class FieldReader:
    """Reads one field of many records. ``read`` raises NotVectorizable."""

    type: pa.DataType
    read: Callable[[Records, Rows], pa.Array]


def field_reader(kind: Any) -> FieldReader | None:
    """``kind``: an Avro type with resolved names. None if it is not supported."""
    if isinstance(kind, list):
        return _nullable(kind)
    if isinstance(kind, str):
        return PRIMITIVES.get(kind)
    match kind["type"]:
        case "record":
            return _record(kind)
        case "enum":
            return _enum(pa.array(kind["symbols"], pa.string()))
        case "fixed":
            size = int(kind["size"])
            return FieldReader(pa.string(), lambda records, rows: _base64(records.blocks(rows, size)))
        case str(plain):
            return PRIMITIVES.get(plain)
    return None


def read_columns(reader: FieldReader, contents: Sequence[bytes]) -> tuple[list[int], pa.Array]:
    """The indexes of the records that can be read together, and their values."""
    rows = [row for row, content in enumerate(contents) if len(content) <= MAX_RECORD_BYTES]
    while rows:
        try:
            return rows, _read_all(reader, [contents[row] for row in rows])
        except NotVectorizable as error:
            rejected = frozenset(error.rows)
            rows = [row for index, row in enumerate(rows) if index not in rejected]
    return [], pa.nulls(0, reader.type)


def _read_all(reader: FieldReader, contents: Sequence[bytes]) -> pa.Array:
    records = Records(contents)
    values = reader.read(records, np.arange(len(contents)))
    if len(longer := np.flatnonzero(records.at != records.ends)):
        raise NotVectorizable(longer.tolist())
    return values


def _record(kind: Any) -> FieldReader | None:
    names = [str(field["name"]) for field in kind["fields"]]
    readers = [field_reader(field["type"]) for field in kind["fields"]]
    supported = [reader for reader in readers if reader is not None]
    if not names or len(supported) < len(names) or len(names) > MAX_FIELDS:
        return None

    def read(records: Records, rows: Rows) -> pa.StructArray:
        return pa.StructArray.from_arrays([reader.read(records, rows) for reader in supported], names)

    return FieldReader(pa.struct([*zip(names, [reader.type for reader in supported], strict=True)]), read)


def _nullable(branches: Sequence[Any]) -> FieldReader | None:
    values = [number for number, branch in enumerate(branches) if branch != "null"]
    value = field_reader(branches[values[0]]) if len(values) == 1 and len(branches) <= 2 else None
    if value is None:
        return None
    of_value, read_value, kind = values[0], value.read, value.type

    def read(records: Records, rows: Rows) -> pa.Array:
        chosen = records.numbers(rows)
        _require_below(len(branches), chosen, rows)
        present = chosen == of_value
        if present.all():
            return read_value(records, rows)
        if not present.any():
            return pa.nulls(len(rows), kind)
        found = read_value(records, rows[present])
        return found.take(pa.array(np.cumsum(present) - 1, mask=~present))

    return FieldReader(kind, read)


def _enum(symbols: pa.StringArray) -> FieldReader:
    def read(records: Records, rows: Rows) -> pa.StringArray:
        chosen = records.numbers(rows)
        _require_below(len(symbols), chosen, rows)
        return symbols.take(pa.array(chosen))

    return FieldReader(pa.string(), read)


def _require_below(count: int, chosen: npt.NDArray[Any], rows: Rows) -> None:
    """Raises NotVectorizable for rows whose number does not choose one of ``count`` things."""
    if len(invalid := np.flatnonzero((chosen < 0) | (chosen >= count))):
        raise NotVectorizable(rows[invalid].tolist())


def _booleans(records: Records, rows: Rows) -> pa.BooleanArray:
    values = records.columns(rows, 1)[:, 0]
    _require_below(2, values, rows)
    return pa.array(values == 1)


def _floats(records: Records, rows: Rows) -> pa.DoubleArray:
    values = records.columns(rows, 4).view("<f4")[:, 0].astype(np.float64)
    return pa.array([float(shortest_float32(value)) for value in values.tolist()], pa.float64())


def _strings(records: Records, rows: Rows) -> pa.StringArray:
    values = records.texts(rows)
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        contents = zip(rows.tolist(), values.to_pylist(), strict=True)
        raise NotVectorizable([row for row, content in contents if not is_utf8(content)]) from error


def _base64(values: pa.BinaryArray) -> pa.StringArray:
    return pa.array([base64_of(value) for value in values.to_pylist()], pa.string())


INTEGERS = FieldReader(pa.int64(), lambda records, rows: pa.array(records.numbers(rows)))
PRIMITIVES: dict[str, FieldReader] = {
    "boolean": FieldReader(pa.bool_(), _booleans),
    "int": INTEGERS,
    "long": INTEGERS,
    "float": FieldReader(pa.float64(), _floats),
    "double": FieldReader(pa.float64(), lambda records, rows: pa.array(records.columns(rows, 8).view("<f8")[:, 0])),
    "bytes": FieldReader(pa.string(), lambda records, rows: _base64(records.texts(rows))),
    "string": FieldReader(pa.string(), _strings),
}
