"""Thousands of Avro records of one schema as JSON texts, field by field instead of record by record.

The texts equal those of ``connect_avro`` and ``exact_json``. The records are in one array of bytes, one after another,
and each has a position in it. A field is read in all records at once, which moves their positions behind it. Arrays,
maps and recursive types are not supported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors import json_columns
from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable
from airflow_cdc_provider.connectors.decoders.common.connect_avro import shortest_float32
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of, number_or_text

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


ReadTexts = Callable[[Records, Rows], pa.StringArray]
"""The JSON texts of one field. Raises NotVectorizable."""


def text_reader(kind: Any) -> ReadTexts | None:
    """``kind``: an Avro type with resolved names. None if it is not supported."""
    if isinstance(kind, list):
        return _nullable(kind)
    if isinstance(kind, str):
        return PRIMITIVES.get(kind)
    match kind["type"]:
        case "record":
            return _record(kind)
        case "enum":
            return _enum(pa.array([encode_basestring(symbol) for symbol in kind["symbols"]]))
        case "fixed":
            size = int(kind["size"])
            return lambda records, rows: _base64(records.blocks(rows, size))
        case str(plain):
            return PRIMITIVES.get(plain)
    return None


def json_texts(read: ReadTexts, contents: Sequence[bytes]) -> list[bytes | None]:
    """The text of each record; None for records that must be read one by one."""
    texts: list[bytes | None] = [None] * len(contents)
    remaining = [row for row, content in enumerate(contents) if len(content) <= MAX_RECORD_BYTES]
    while remaining:
        try:
            found = _read_all(read, [contents[row] for row in remaining])
        except NotVectorizable as error:
            rejected = frozenset(error.rows)
            remaining = [row for index, row in enumerate(remaining) if index not in rejected]
        else:
            for row, text in zip(remaining, found, strict=True):
                texts[row] = text
            break
    return texts


def _read_all(read: ReadTexts, contents: Sequence[bytes]) -> list[bytes]:
    records = Records(contents)
    texts = read(records, np.arange(len(contents)))
    if len(longer := np.flatnonzero(records.at != records.ends)):
        raise NotVectorizable(longer.tolist())
    found: list[bytes] = texts.cast(pa.binary()).to_pylist()
    return found


def _record(kind: Any) -> ReadTexts | None:
    names = [str(field["name"]) for field in kind["fields"]]
    readers = [text_reader(field["type"]) for field in kind["fields"]]
    supported = [reader for reader in readers if reader is not None]
    if not names or len(supported) < len(names) or len(names) > MAX_FIELDS:
        return None
    return lambda records, rows: json_columns.objects(names, [read(records, rows) for read in supported])


def _nullable(branches: Sequence[Any]) -> ReadTexts | None:
    values = [number for number, branch in enumerate(branches) if branch != "null"]
    read = text_reader(branches[values[0]]) if len(values) == 1 and len(branches) <= 2 else None
    if read is None:
        return None
    read_value, value = read, values[0]

    def texts(records: Records, rows: Rows) -> pa.StringArray:
        chosen = records.numbers(rows)
        if len(invalid := np.flatnonzero((chosen < 0) | (chosen >= len(branches)))):
            raise NotVectorizable(rows[invalid].tolist())
        present = chosen == value
        if present.all():
            return read_value(records, rows)
        if not present.any():
            return pa.repeat(pa.scalar("null"), len(rows))
        found = read_value(records, rows[present])
        return pc.fill_null(found.take(pa.array(np.cumsum(present) - 1, mask=~present)), "null")

    return texts


def _enum(symbols: pa.StringArray) -> ReadTexts:
    def texts(records: Records, rows: Rows) -> pa.StringArray:
        chosen = records.numbers(rows)
        if len(invalid := np.flatnonzero((chosen < 0) | (chosen >= len(symbols)))):
            raise NotVectorizable(rows[invalid].tolist())
        return symbols.take(pa.array(chosen))

    return texts


def _integers(records: Records, rows: Rows) -> pa.StringArray:
    return pa.array(records.numbers(rows)).cast(pa.string())


def _booleans(records: Records, rows: Rows) -> pa.StringArray:
    values = records.columns(rows, 1)[:, 0]
    if len(invalid := np.flatnonzero(values > 1)):
        raise NotVectorizable(rows[invalid].tolist())
    return pc.if_else(pa.array(values == 1), "true", "false")


def _floats(records: Records, rows: Rows) -> pa.StringArray:
    values = records.columns(rows, 4).view("<f4")[:, 0].astype(np.float64)
    return _numbers([shortest_float32(value) for value in values.tolist()])


def _doubles(records: Records, rows: Rows) -> pa.StringArray:
    return _numbers([number_or_text(value) for value in records.columns(rows, 8).view("<f8")[:, 0].tolist()])


def _numbers(values: Sequence[float | str]) -> pa.StringArray:
    """The texts of words without commas, too. One text of all is written in a third of the time of one text each."""
    return pa.array(dumps(values)[1:-1].split(",") if values else [], pa.string())


def _strings(records: Records, rows: Rows) -> pa.StringArray:
    values = records.texts(rows)
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid as error:
        contents = zip(rows.tolist(), values.to_pylist(), strict=True)
        raise NotVectorizable([row for row, content in contents if not _is_utf8(content)]) from error
    return json_columns.strings(texts)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _base64(values: pa.BinaryArray) -> pa.StringArray:
    return json_columns.quoted(pa.array([base64_of(value) for value in values.to_pylist()], pa.string()))


PRIMITIVES: dict[str, ReadTexts] = {
    "boolean": _booleans,
    "int": _integers,
    "long": _integers,
    "float": _floats,
    "double": _doubles,
    "bytes": lambda records, rows: _base64(records.texts(rows)),
    "string": _strings,
}
