"""The rows of an event as cells: bytes as they came, None for NULL, ``ABSENT`` for what was not sent. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from airflow_cdc_provider.connectors.sources.mysql.binlog import (
    COMPRESSED,
    UPDATES,
    VERSION_2,
    WRITES,
    Malformed,
    inflated,
)
from airflow_cdc_provider.connectors.sources.mysql.table_map import Reader, TableMap


class Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()
Cell = bytes | None | Absent
TABLE_BYTES, FLAG_BYTES = 6, 2


class RowChange(NamedTuple):
    """``old``: the cells before an update or a delete; ``new``: those after an insert or an update."""

    old: list[Cell] | None
    new: list[Cell] | None
    raw: bytes


def table_of(body: bytes) -> int:
    return int.from_bytes(body[:TABLE_BYTES], "little")


def rows_of(kind: int, body: bytes, table: TableMap) -> Iterator[RowChange]:
    """Raises Malformed and its like where the event is not one of this table. ``raw`` of a row is an event of its own
    with that row alone, uncompressed."""
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
        data = inflated(data)
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
    """The type of an event of the same rows that is not compressed."""
    return kind - 143 if kind in (166, 167, 168) else kind - 139 if kind in COMPRESSED else kind


class _Image:
    """One image of a row: only the columns of the bitmap are in it."""

    def __init__(self, table: TableMap, present: bytes) -> None:
        self._width = len(table.fields)
        self._here = [
            (at, field.prefix, field.width if not field.prefix else 0)
            for at, field in enumerate(table.fields)
            if present[at >> 3] & 1 << (at & 7)
        ]
        self._nulls = (len(self._here) + 7) // 8

    def read(self, data: bytes, at: int) -> tuple[list[Cell], int]:
        nulls = data[at : at + self._nulls]
        at += self._nulls
        cells: list[Cell] = [ABSENT] * self._width
        for number, (place, prefix, width) in enumerate(self._here):
            if nulls[number >> 3] & 1 << (number & 7):
                cells[place] = None
                continue
            if prefix:
                width = int.from_bytes(data[at : at + prefix], "little")
                at += prefix
            cells[place] = data[at : at + width]
            at += width
        if at > len(data):
            raise Malformed("a row that ends too early")
        return cells, at
