"""Cells of the binlog as values, equal to those that a full copy reads for the same row. Pure.

A reader raises one of ``binlog.MALFORMED`` for a cell that does not fit its column, Unrepresentable for a date that
does not exist, and NoText for a text with a code that has no character.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from ipaddress import IPv4Address
from socket import AF_INET6, inet_ntop
from typing import Any
from uuid import UUID

from airflow_cdc_provider.connectors.sources.mysql.binlog import Malformed, decompress
from airflow_cdc_provider.connectors.sources.mysql.charsets import NoText, decoder
from airflow_cdc_provider.connectors.sources.mysql.json_binary import json_text
from airflow_cdc_provider.connectors.sources.mysql.table_map import COMPRESSED, DIGIT_BYTES, Field, T
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.connectors.unrepresentable import NO_DATE, Unrepresentable
from airflow_cdc_provider.core.table.schema import Kind

Read = Callable[[bytes], Any]
EPOCH = datetime(1970, 1, 1)
EXACT = Context(prec=80)
SCALES = (1_000_000, 10_000, 100, 1)
"""Microseconds per unit of a fraction, by its number of bytes."""

INTEGER_TYPES = frozenset({T.TINY, T.SHORT, T.INT24, T.LONG, T.LONGLONG})


def cell_reader(field: Field, column: CatalogColumn) -> Read:
    """Raises NoText if there is no conversion of the column's character set, or of a label."""
    read = _reader(field, column)
    return (lambda cell: read(_uncompressed(cell))) if field.type in COMPRESSED else read


def _reader(field: Field, column: CatalogColumn) -> Read:
    kind = column.column.type.kind
    if field.type in INTEGER_TYPES:
        signed = not column.unsigned
        if kind is Kind.DECIMAL:
            return lambda cell: Decimal(int.from_bytes(cell, "little"))
        return lambda cell: int.from_bytes(cell, "little", signed=signed)
    match field.type:
        case T.FLOAT:
            return shortest_float
        case T.DOUBLE:
            return lambda cell: struct.unpack("<d", cell)[0]
        case T.YEAR:
            return lambda cell: cell[0] + 1900 if cell[0] else 0
        case T.NEWDECIMAL:
            return _decimal(*field.digits, text=kind is Kind.TEXT)
        case T.BIT:
            return _boolean if kind is Kind.BOOLEAN else lambda cell: cell
        case T.DATE:
            return lambda cell: _date(int.from_bytes(cell, "little"))
        case T.TIME | T.TIME2:
            return _old_time if field.type == T.TIME else lambda cell: _time(cell, field.meta)
        case T.DATETIME:
            return lambda cell: _old_datetime(int.from_bytes(cell, "little"))
        case T.DATETIME2:
            return lambda cell: _datetime(cell, field.meta)
        case T.TIMESTAMP:
            return lambda cell: _timestamp(int.from_bytes(cell, "little"), 0, 0)
        case T.TIMESTAMP2:
            return lambda cell: _timestamp(int.from_bytes(cell[:4]), _fraction(cell[4:], field.meta), field.meta)
        case T.JSON:
            return json_text
        case T.ENUM | T.SET:
            members = _members(field, column)
            return _enum(members) if field.type == T.ENUM else _set(members)
    match column.data_type:
        case "uuid":
            return _uuid
        case "inet6":
            return _inet6
        case "inet4":
            return lambda cell: str(IPv4Address(cell.ljust(4, b"\0")))
        case "binary":
            return lambda cell: cell.ljust(column.octets, b"\0")
    if kind is Kind.BYTES:
        return lambda cell: cell
    return decoder(column.charset)


def _uncompressed(cell: bytes) -> bytes:
    """A cell of a COMPRESSED column: empty, or a zero byte and the value, or compressed data."""
    return cell[1:] if cell[:1] in (b"", b"\0") else decompress(cell)


def shortest_float(cell: bytes) -> float:
    """The shortest decimal number with the same four bytes."""
    (value,) = struct.unpack("<f", cell)
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == cell:
            return short
    return float(value)


def _boolean(cell: bytes) -> bool:
    return cell != b"\0"


def _decimal(whole: int, scale: int, text: bool) -> Read:
    """Four bytes per nine digits, fewer bytes for the rest. The first bit is the inverted sign."""
    digits = [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]
    parts = [(DIGIT_BYTES[count], count) for count in digits if count]
    length = sum(size for size, _ in parts)

    def read(cell: bytes) -> Any:
        if len(cell) != length:
            raise Malformed("a decimal of another length")
        negative = not cell[0] & 0x80
        packed = bytes([cell[0] ^ 0x80, *cell[1:]])
        if negative:
            packed = bytes(byte ^ 0xFF for byte in packed)
        at, number = 0, 0
        for size, count in parts:
            number = number * 10**count + int.from_bytes(packed[at : at + size])
            at += size
        value = Decimal(-number if negative else number).scaleb(-scale, EXACT)
        return f"{value:f}" if text else value

    return read


def _date(packed: int) -> date:
    year, month, day = packed >> 9, packed >> 5 & 15, packed & 31
    try:
        return date(year, month, day)
    except ValueError:
        raise Unrepresentable(NO_DATE, f"{year:04d}-{month:02d}-{day:02d}") from None


def _datetime(cell: bytes, digits: int) -> datetime:
    packed = int.from_bytes(cell[:5]) - (1 << 39)
    months, rest = packed >> 22, packed & 0x3FFFFF
    clock = rest >> 12 & 31, rest >> 6 & 63, rest & 63
    return _checked_datetime(months // 13, months % 13, rest >> 17, clock, _fraction(cell[5:], digits), digits)


def _old_datetime(packed: int) -> datetime:
    days, clock = divmod(packed, 1_000_000)
    parts = clock // 10_000, clock // 100 % 100, clock % 100
    return _checked_datetime(days // 10_000, days // 100 % 100, days % 100, parts, 0, 0)


def _checked_datetime(
    year: int, month: int, day: int, clock: tuple[int, int, int], micros: int, digits: int
) -> datetime:
    """Raises Unrepresentable for dates with zeros, and for dates such as 31 February, which a server can allow."""
    try:
        date(year, month, day)
    except ValueError:
        hour, minute, second = clock
        seconds = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
        raise Unrepresentable(NO_DATE, seconds + _fraction_text(micros, digits)) from None
    return datetime(year, month, day, *clock, micros)


def _timestamp(seconds: int, micros: int, digits: int) -> datetime:
    """UTC without a time zone. The start of 1970 is the zero date."""
    if not seconds and not micros:
        raise Unrepresentable(NO_DATE, "0000-00-00 00:00:00" + _fraction_text(0, digits))
    return EPOCH + timedelta(seconds=seconds, microseconds=micros)


def _fraction_text(micros: int, digits: int) -> str:
    return f".{micros:06d}"[: digits + 1] if digits else ""


def _fraction(cell: bytes, digits: int) -> int:
    """Microseconds. A byte has two digits."""
    return int.from_bytes(cell) * SCALES[(digits + 1) // 2]


def _time(cell: bytes, digits: int) -> str:
    """Time and fraction are one number with an offset, so a negative fraction borrows from the seconds."""
    size = 8 * (len(cell) - 3)
    packed = int.from_bytes(cell) - (1 << 23 + size)
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    clock, micros = packed >> size, (packed & (1 << size) - 1) * SCALES[(digits + 1) // 2]
    text = f"{sign}{clock >> 12 & 0x3FF:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
    return f"{text}.{micros:06d}"[: len(text) + 1 + digits] if digits else text


def _old_time(cell: bytes) -> str:
    value = int.from_bytes(cell, "little", signed=True)
    sign, value = ("-", -value) if value < 0 else ("", value)
    return f"{sign}{value // 10_000:02d}:{value // 100 % 100:02d}:{value % 100:02d}"


def _members(field: Field, column: CatalogColumn) -> tuple[str, ...]:
    """The catalog shows characters above U+FFFF, and codes without a character, as question marks."""
    if field.members is None:
        if any("?" in member for member in column.members):
            raise NoText("a label with a question mark, for which the catalog also shows other characters")
        return column.members
    return tuple(map(decoder(column.charset), field.members))


def _enum(members: tuple[str, ...]) -> Read:
    """The cell is the number of the member; 0 is the server's empty text for an invalid value."""

    def read(cell: bytes) -> str:
        number = int.from_bytes(cell, "little")
        return members[number - 1] if number else ""

    return read


def _set(members: tuple[str, ...]) -> Read:
    """The cell has one bit per member."""

    def read(cell: bytes) -> str:
        bits = int.from_bytes(cell, "little")
        if bits >> len(members):
            raise Malformed("a member that the set does not have")
        return ",".join(member for index, member in enumerate(members) if bits >> index & 1)

    return read


def _uuid(cell: bytes) -> str:
    return str(UUID(bytes=cell.ljust(16, b"\0")))


def _inet6(cell: bytes) -> str:
    return inet_ntop(AF_INET6, cell.ljust(16, b"\0"))
