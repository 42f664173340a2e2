"""The rows of an event as cells: raw bytes, None for NULL, ``ABSENT`` for a column that the event lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from airflow_cdc_provider.connectors.sources.mysql.binlog import (
    COMPRESSED,
    UPDATES,
    VERSION_2,
    WRITES,
    Malformed,
    decompress,
)
from airflow_cdc_provider.connectors.sources.mysql.table_map import Reader, TableMap


class Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()
Cell = bytes | None | Absent
TABLE_BYTES, FLAG_BYTES = 6, 2


class RowChange(NamedTuple):
    """``old``: the cells before an update or a delete. ``new``: the cells after an insert or an update. ``raw``: an
    uncompressed event with this row alone."""

    old: list[Cell] | None
    new: list[Cell] | None
    raw: bytes


def fill_absent(old: list[Cell] | None, new: list[Cell]) -> list[Cell]:
    """``new`` with the cells of ``old`` for absent ones: an update leaves these columns unchanged."""
    if old is None:
        return new
    return [before if after is ABSENT else after for before, after in zip(old, new, strict=True)]


def table_id_of(body: bytes) -> int:
    return int.from_bytes(body[:TABLE_BYTES], "little")


def parse_rows(kind: int, body: bytes, table: TableMap) -> Iterator[RowChange]:
    """Raises one of ``binlog.MALFORMED`` if the event does not match the table map."""
    reader = Reader(body, TABLE_BYTES + FLAG_BYTES)
    if kind in VERSION_2:
        reader.take(int.from_bytes(reader.take(2), "little") - 2)
    count = reader.packed()
    if count != len(table.fields):
        raise Malformed(f"a row of {count} columns in a table of {len(table.fields)}")
    first = _Image(table, reader.take((count + 7) // 8))
    second = _Image(table, reader.take((count + 7) // 8)) if kind in UPDATES else None
    head = body[: reader.at]
    data = body[reader.at :]
    if kind in COMPRESSED:
        data = decompress(data)
    at = 0
    while at < len(data):
        start = at
        cells, at = first.read(data, at)
        if second is not None:
            new, at = second.read(data, at)
            yield RowChange(cells, new, head + data[start:at])
        elif kind in WRITES:
            yield RowChange(None, cells, head + data[start:at])
        else:
            yield RowChange(cells, None, head + data[start:at])


def uncompressed(kind: int) -> int:
    """The event type for the same rows without compression."""
    return kind - 143 if kind in (166, 167, 168) else kind - 139 if kind in COMPRESSED else kind


class _Image:
    """The layout of a row image, which contains only the columns in the bitmap ``present``."""

    def __init__(self, table: TableMap, present: bytes) -> None:
        self._width = len(table.fields)
        self._columns = [
            (index, field.prefix, field.width if not field.prefix else 0)
            for index, field in enumerate(table.fields)
            if present[index >> 3] & 1 << (index & 7)
        ]
        self._null_bytes = (len(self._columns) + 7) // 8

    def read(self, data: bytes, at: int) -> tuple[list[Cell], int]:
        nulls = data[at : at + self._null_bytes]
        at += self._null_bytes
        cells: list[Cell] = [ABSENT] * self._width
        for bit, (index, prefix, width) in enumerate(self._columns):
            if nulls[bit >> 3] & 1 << (bit & 7):
                cells[index] = None
                continue
            if prefix:
                width = int.from_bytes(data[at : at + prefix], "little")
                at += prefix
            cells[index] = data[at : at + width]
            at += width
        if at > len(data):
            raise Malformed("a row that ends too early")
        return cells, at
