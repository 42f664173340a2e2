"""Parses the messages of ``pgoutput``, protocol version 1.

Cells are kept as Latin-1, one character per byte: numbers and dates are ASCII, so only texts are decoded. A message
that cannot be parsed completely raises one of ``MALFORMED``; nothing is skipped or guessed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from airflow_cdc_provider.core.table.source_names import table_name

BEGIN, COMMIT, RELATION, TYPE, ORIGIN, MESSAGE = b"BCRYOM"
INSERT, UPDATE, DELETE, TRUNCATE = b"IUDT"
NEW, KEY, OLD = b"NKO"

UNCHANGED: Final = "\x00unchanged"
"""A cell whose TOASTed value was not changed and not sent. No text of PostgreSQL can contain a NUL."""

Cell = str | None
POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

_begin = Struct(">QqI")
_commit = Struct(">BQQq")
_relation = Struct(">I")
_count = Struct(">H")
_attribute = Struct(">Ii")
_truncate = Struct(">IB")
_cell = Struct(">BI")
_AFTER_LAST = bytes(_cell.size)


class MalformedMessage(ValueError):
    """Bytes that are not a message of the protocol."""


MALFORMED = (ValueError, StructError, IndexError, OverflowError)


@dataclass(frozen=True)
class Begin:
    """``commit_lsn`` is where the commit record starts."""

    commit_lsn: int
    commit_ts: datetime
    xid: int


@dataclass(frozen=True)
class Commit:
    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True)
class Attribute:
    """``identity``: the column is part of the replica identity."""

    name: str
    type_oid: int
    typmod: int
    identity: bool


@dataclass(frozen=True)
class Relation:
    """``identity`` is the catalog's letter: d default, n nothing, f full, i index."""

    oid: int
    table: str
    identity: str
    attributes: tuple[Attribute, ...]


class RowChange(NamedTuple):
    """``letter`` is INSERT, UPDATE or DELETE. ``old_kind`` is KEY (``old`` has only the identity columns), OLD (it is
    the whole row), or None. A tuple, because one is created for each row."""

    letter: int
    oid: int
    old_kind: int | None
    old: list[Cell] | None
    new: list[Cell] | None


@dataclass(frozen=True)
class Truncate:
    oids: tuple[int, ...]


def parse_begin(data: bytes) -> Begin:
    commit_lsn, micros, xid = _whole(_begin, data)
    return Begin(commit_lsn, POSTGRES_EPOCH + timedelta(microseconds=micros), xid)


def parse_commit(data: bytes) -> Commit:
    _flags, commit_lsn, end_lsn, _micros = _whole(_commit, data)
    return Commit(commit_lsn, end_lsn)


def parse_relation(data: bytes) -> Relation:
    (oid,) = _relation.unpack_from(data, 1)
    namespace, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _count.unpack_from(data, at + 1)
    at += 3
    attributes = []
    for _ in range(count):
        flags = data[at]
        column, at = _text(data, at + 1)
        type_oid, typmod = _attribute.unpack_from(data, at)
        at += _attribute.size
        attributes.append(Attribute(column, type_oid, typmod, bool(flags & 1)))
    _require_end(data, at)
    if identity not in "dnfi":
        raise MalformedMessage(f"unknown replica identity {identity!r}")
    return Relation(oid, table_name(namespace or "pg_catalog", name), identity, tuple(attributes))


def with_identity(data: bytes, columns: Collection[str]) -> bytes:
    """A relation message in which only those of ``columns`` are part of the replica identity."""
    changed = bytearray(data)
    at = data.index(0, data.index(0, 5) + 1) + 4
    while at < len(data):
        column, after = _text(data, at + 1)
        if column not in columns:
            changed[at] &= ~1
        at = after + _attribute.size
    return bytes(changed)


def parse_truncate(data: bytes) -> Truncate:
    count, _options = _truncate.unpack_from(data, 1)
    _require_end(data, 1 + _truncate.size + 4 * count)
    return Truncate(Struct(f">{count}I").unpack_from(data, 1 + _truncate.size))


def relation_of(data: bytes) -> int:
    """The oid in a row change, which may be malformed otherwise."""
    (oid,) = _relation.unpack_from(data, 1)
    return int(oid)


def parse_row_change(data: bytes) -> RowChange:
    """Parse an insert, update or delete. A letter precedes each image."""
    (oid,) = _relation.unpack_from(data, 1)
    padded = data + _AFTER_LAST
    text = data.decode("latin-1")
    letter, at = padded[5], 6
    old_kind = old = new = None
    if letter != NEW:
        if letter not in (KEY, OLD) or data[0] == INSERT:
            raise MalformedMessage(f"unknown image {letter:#x}")
        old_kind = letter
        old, at = _cells(padded, text, at)
        letter, at = padded[at], at + 1
    if data[0] == DELETE:
        at -= 1
    elif letter == NEW:
        new, at = _cells(padded, text, at)
    if at != len(data) or (new is None) != (data[0] == DELETE) or (data[0] == DELETE and old is None):
        raise MalformedMessage(f"a row change of {len(data)} bytes whose images end at {at}")
    return RowChange(data[0], oid, old_kind, old, new)


def _cells(padded: bytes, text: str, at: int) -> tuple[list[Cell], int]:
    """``padded`` has the bytes of ``text`` and some more, so that the header of an empty last cell can be unpacked."""
    unpack = _cell.unpack_from
    cells: list[Cell] = []
    append = cells.append
    (count,) = _count.unpack_from(padded, at)
    at += 2
    for _ in range(count):
        kind, length = unpack(padded, at)
        if kind == 116:  # t
            at += 5
            append(text[at : at + length])
            at += length
        elif kind == 110:  # n
            append(None)
            at += 1
        elif kind == 117:  # u
            append(UNCHANGED)
            at += 1
        else:
            raise MalformedMessage(f"unknown cell {kind:#x}")
    return cells, at


def _whole(layout: Struct, data: bytes) -> tuple[int, ...]:
    _require_end(data, 1 + layout.size)
    return layout.unpack_from(data, 1)


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.find(0, at)
    if end < 0:
        raise MalformedMessage(f"a name without end at byte {at}")
    return data[at:end].decode("utf-8"), end + 1


def _require_end(data: bytes, at: int) -> None:
    if len(data) != at:
        raise MalformedMessage(f"the message has {len(data)} bytes, its content {at}")
