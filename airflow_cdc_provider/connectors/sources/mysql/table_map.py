"""Table map events, which precede the row events of a table: its columns and their layout in a row. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from airflow_cdc_provider.connectors.sources.mysql.binlog import Malformed
from airflow_cdc_provider.core.table.source_names import table_name

V = TypeVar("V")


class T(IntEnum):
    """Column types of the binlog."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


NUMERIC = frozenset({T.TINY, T.SHORT, T.INT24, T.LONG, T.LONGLONG, T.NEWDECIMAL, T.FLOAT, T.DOUBLE, T.YEAR})
COMPRESSED = frozenset({T.BLOB_COMPRESSED, T.VARCHAR_COMPRESSED})
"""Of MariaDB, with the metadata of the type without compression."""

CHARACTER = frozenset({T.STRING, T.VAR_STRING, T.VARCHAR, T.BLOB, T.VECTOR}) | COMPRESSED
FIXED = {
    T.TINY: 1, T.SHORT: 2, T.INT24: 3, T.LONG: 4, T.LONGLONG: 8, T.FLOAT: 4, T.DOUBLE: 8, T.YEAR: 1, T.DATE: 3,
    T.TIME: 3, T.DATETIME: 8, T.TIMESTAMP: 4,
}  # fmt: skip
FRACTIONAL = {T.TIMESTAMP2: 4, T.DATETIME2: 5, T.TIME2: 3}
META_BYTES = {
    T.FLOAT: 1, T.DOUBLE: 1, T.VARCHAR: 2, T.BIT: 2, T.NEWDECIMAL: 2, T.BLOB: 1, T.VAR_STRING: 2, T.STRING: 2,
    T.GEOMETRY: 1, T.JSON: 1, T.VECTOR: 1, T.TIMESTAMP2: 1, T.DATETIME2: 1, T.TIME2: 1,
    T.BLOB_COMPRESSED: 1, T.VARCHAR_COMPRESSED: 2,
}  # fmt: skip
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, NAMES, SET_VALUES, ENUM_VALUES = 1, 2, 3, 4, 5, 6
KEY, KEY_PREFIX, ENUM_SET_DEFAULT_CHARSET, ENUM_SET_CHARSET = 8, 9, 10, 11


@dataclass(frozen=True)
class Field:
    """A column in a table map. ``type`` and ``meta`` are always present. The others depend on ``binlog_row_metadata``:
    without them ``name`` is empty and the rest None."""

    type: int
    meta: int
    name: str = ""
    unsigned: bool | None = None
    collation: int | None = None
    members: tuple[bytes, ...] | None = None

    @property
    def prefix(self) -> int:
        """Bytes of the length before a value; 0 if every value has ``width`` bytes."""
        if self.type in (T.VARCHAR, T.VARCHAR_COMPRESSED):
            return 2 if self.meta > 255 else 1
        if self.type in (T.STRING, T.VAR_STRING):
            return 2 if self.length > 255 else 1
        return self.meta if self.type in (T.BLOB, T.BLOB_COMPRESSED, T.GEOMETRY, T.JSON, T.VECTOR) else 0

    @property
    def width(self) -> int:
        if self.type in FIXED:
            return FIXED[T(self.type)]
        if self.type in FRACTIONAL:
            return FRACTIONAL[T(self.type)] + (self.meta + 1) // 2
        if self.type in (T.ENUM, T.SET):
            return self.meta
        if self.type == T.BIT:
            return (self.bits + 7) // 8
        whole, scale = self.digits
        return (whole // 9 + scale // 9) * 4 + DIGIT_BYTES[whole % 9] + DIGIT_BYTES[scale % 9]

    @property
    def length(self) -> int:
        """Maximum bytes of a CHAR or BINARY value."""
        return ((self.meta >> 4) & 0x300 ^ 0x300) + (self.meta & 0xFF)

    @property
    def bits(self) -> int:
        return (self.meta >> 8) * 8 + (self.meta & 0xFF)

    @property
    def digits(self) -> tuple[int, int]:
        """Digits before and after the decimal point."""
        precision, scale = self.meta & 0xFF, self.meta >> 8
        return precision - scale, scale


@dataclass(frozen=True)
class TableMap:
    """``key``: indexes of the primary key's columns; None if the binlog does not contain them."""

    id: int
    table: str
    fields: tuple[Field, ...]
    key: tuple[int, ...] | None = None

    @property
    def has_names(self) -> bool:
        return bool(self.fields) and bool(self.fields[0].name)


def table_id_and_name(body: bytes) -> tuple[int, str]:
    """The id and ``database.table``, which are enough to skip the rows of the table."""
    at = 9 + body[8]
    database, name = body[9:at].decode(), body[at + 2 : at + 2 + body[at + 1]].decode()
    return int.from_bytes(body[:6], "little"), table_name(database, name)


def parse_table_map(body: bytes, mariadb: bool) -> TableMap:
    """``mariadb``: geometry columns count as columns with a character set."""
    table_id, table = table_id_and_name(body)
    reader = Reader(body, 8)
    for _ in range(2):
        reader.take(reader.byte() + 1)
    count = reader.packed()
    types = reader.take(count)
    meta = Reader(reader.take(reader.packed()))
    shapes = [_shape(kind, meta) for kind in types]
    reader.take((count + 7) // 8)
    metadata = dict(_metadata(reader))
    character = CHARACTER | {T.GEOMETRY} if mariadb else CHARACTER
    return TableMap(table_id, table, _fields(shapes, metadata, character), _key(metadata))


class Reader:
    """Reads values in sequence. Raises Malformed beyond the end of the data."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        if len(taken) != count:
            raise Malformed("an event that ends too early")
        self.at += count
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def packed(self) -> int:
        first = self.byte()
        if first < 251:
            return first
        return int.from_bytes(self.take({252: 2, 253: 3, 254: 8}[first]), "little")

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


def _shape(kind: int, meta: Reader) -> tuple[int, int]:
    if kind not in T.__members__.values():
        raise Malformed(f"a column of unknown type {kind}")
    size = META_BYTES.get(T(kind), 0)
    raw = meta.take(size)
    if kind in (T.STRING, T.VAR_STRING):
        value = raw[0] << 8 | raw[1]
        return (raw[0], raw[1]) if raw[0] in (T.ENUM, T.SET) else (kind, value)
    return kind, int.from_bytes(raw, "little")


def _metadata(reader: Reader) -> Iterator[tuple[int, bytes]]:
    while reader.more:
        kind = reader.byte()
        yield kind, reader.take(reader.packed())


def _fields(shapes: list[tuple[int, int]], metadata: dict[int, bytes], character: frozenset[T]) -> tuple[Field, ...]:
    names = _texts(metadata.get(NAMES, b""))
    unsigned = _by_type(shapes, NUMERIC, _bits(metadata[SIGNEDNESS])) if SIGNEDNESS in metadata else {}
    collations = _by_type(shapes, character, _collations(metadata, DEFAULT_CHARSET, COLUMN_CHARSET, shapes, character))
    listed = frozenset({T.ENUM, T.SET})
    collations |= _by_type(
        shapes, listed, _collations(metadata, ENUM_SET_DEFAULT_CHARSET, ENUM_SET_CHARSET, shapes, listed)
    )
    members = _by_type(shapes, frozenset({T.ENUM}), _lists(metadata.get(ENUM_VALUES, b"")))
    members |= _by_type(shapes, frozenset({T.SET}), _lists(metadata.get(SET_VALUES, b"")))
    if names and len(names) != len(shapes):
        raise Malformed("the number of names is not the number of columns")
    return tuple(
        Field(
            kind,
            meta,
            names[at].decode() if names else "",
            unsigned.get(at),
            collations.get(at),
            members.get(at),
        )
        for at, (kind, meta) in enumerate(shapes)
    )


def _key(metadata: dict[int, bytes]) -> tuple[int, ...] | None:
    if KEY in metadata:
        return tuple(_numbers(metadata[KEY]))
    if KEY_PREFIX in metadata:
        return tuple(_numbers(metadata[KEY_PREFIX])[::2])
    return () if NAMES in metadata else None


def _by_type(shapes: list[tuple[int, int]], types: frozenset[T], values: list[V]) -> dict[int, V]:
    """Column index → value. A list in the metadata counts the columns of certain types only."""
    indexes = [index for index, (kind, _) in enumerate(shapes) if kind in types]
    return dict(zip(indexes, values, strict=False))


def _collations(
    metadata: dict[int, bytes], default: int, each: int, shapes: list[tuple[int, int]], types: frozenset[T]
) -> list[int]:
    if each in metadata:
        return _numbers(metadata[each])
    if default not in metadata:
        return []
    usual, *pairs = _numbers(metadata[default])
    others = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return [others.get(number, usual) for number in range(sum(kind in types for kind, _ in shapes))]


def _numbers(data: bytes) -> list[int]:
    reader, numbers = Reader(data), []
    while reader.more:
        numbers.append(reader.packed())
    return numbers


def _bits(data: bytes) -> list[bool]:
    return [bool(byte & 0x80 >> bit) for byte in data for bit in range(8)]


def _texts(data: bytes) -> list[bytes]:
    reader, texts = Reader(data), []
    while reader.more:
        texts.append(reader.take(reader.packed()))
    return texts


def _lists(data: bytes) -> list[tuple[bytes, ...]]:
    reader, lists = Reader(data), []
    while reader.more:
        lists.append(tuple(reader.take(reader.packed()) for _ in range(reader.packed())))
    return lists
