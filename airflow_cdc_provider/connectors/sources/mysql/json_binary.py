"""MySQL's binary JSON as the text that the server prints. Pure.

    document = type 1 · value; containers have offsets from their own start, 2 or 4 bytes each

MariaDB stores JSON as text.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from json.encoder import encode_basestring

from airflow_cdc_provider.connectors.sources.mysql.binlog import Malformed
from airflow_cdc_provider.connectors.sources.mysql.table_map import DIGIT_BYTES

LITERALS = {0: "null", 1: "true", 2: "false"}
INTEGERS = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
LITERAL, DOUBLE, STRING, OPAQUE = 4, 11, 12, 15
SMALL, LARGE = 2, 4
CONTAINERS = {0: (True, SMALL), 1: (True, LARGE), 2: (False, SMALL), 3: (False, LARGE)}
INLINE = {SMALL: frozenset({4, 5, 6}), LARGE: frozenset({4, 5, 6, 7, 8})}
DECIMAL, TIME, TIMESTAMP, DATE, DATETIME = 246, 11, 7, 10, 12


def json_text(data: bytes) -> str:
    """The server stores an empty document when it converts NULL for a NOT NULL column."""
    return _value(data[0], data[1:]) if data else "null"


def _value(kind: int, data: bytes) -> str:
    if kind in CONTAINERS:
        return _container(data, *CONTAINERS[kind])
    if kind == LITERAL:
        return LITERALS[data[0]]
    if kind in INTEGERS:
        return str(struct.unpack_from(INTEGERS[kind], data)[0])
    if kind == DOUBLE:
        return _double(struct.unpack_from("<d", data)[0])
    if kind == STRING:
        length, at = _length(data)
        return encode_basestring(data[at : at + length].decode())
    if kind == OPAQUE:
        length, at = _length(data[1:])
        return _opaque(data[0], data[1 + at : 1 + at + length])
    raise Malformed(f"a JSON value of unknown type {kind}")


def _container(data: bytes, is_object: bool, width: int) -> str:
    count = int.from_bytes(data[:width], "little")
    at = 2 * width
    names = []
    if is_object:
        for _ in range(count):
            offset = int.from_bytes(data[at : at + width], "little")
            length = int.from_bytes(data[at + width : at + width + 2], "little")
            names.append(encode_basestring(data[offset : offset + length].decode()))
            at += width + 2
    values = []
    for _ in range(count):
        kind, entry = data[at], data[at + 1 : at + 1 + width]
        value = entry if kind in INLINE[width] else data[int.from_bytes(entry, "little") :]
        values.append(_value(kind, value))
        at += 1 + width
    if is_object:
        return "{" + ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True)) + "}"
    return "[" + ", ".join(values) + "]"


def _length(data: bytes) -> tuple[int, int]:
    """A length of seven bits per byte, the lowest first; and its size in bytes."""
    length = 0
    for at in range(5):
        length |= (data[at] & 0x7F) << 7 * at
        if not data[at] & 0x80:
            return length, at + 1
    raise Malformed("a JSON value whose length does not end")


def _double(value: float) -> str:
    return repr(value).replace("e+", "e")


def _opaque(kind: int, data: bytes) -> str:
    if kind == DECIMAL:
        return _decimal(data)
    if kind in (TIME, DATE, DATETIME, TIMESTAMP):
        return f'"{_temporal(kind, int.from_bytes(data, "little", signed=True))}"'
    return f'"base64:type{kind}:{b64encode(data).decode("ascii")}"'


def _decimal(data: bytes) -> str:
    precision, scale, packed = data[0], data[1], data[2:]
    whole = precision - scale
    negative = not packed[0] & 0x80
    packed = bytes([packed[0] ^ 0x80, *packed[1:]])
    if negative:
        packed = bytes(byte ^ 0xFF for byte in packed)
    integer_digits = [whole % 9] * bool(whole % 9) + [9] * (whole // 9)
    fraction_digits = [9] * (scale // 9) + [scale % 9] * bool(scale % 9)
    texts, at = [], 0
    for digits in (*integer_digits, *fraction_digits):
        size = DIGIT_BYTES[digits]
        texts.append(f"{int.from_bytes(packed[at : at + size]):0{digits}d}")
        at += size
    integer = "".join(texts[: len(integer_digits)]).lstrip("0") or "0"
    return f"{'-' if negative else ''}{integer}" + (f".{''.join(texts[len(integer_digits) :])}" if scale else "")


def _temporal(kind: int, packed: int) -> str:
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    micros, rest = packed & 0xFFFFFF, packed >> 24
    if kind == TIME:
        return f"{sign}{rest >> 12 & 0x3FF:02d}:{rest >> 6 & 63:02d}:{rest & 63:02d}.{micros:06d}"
    months, day = rest >> 22, rest >> 17 & 31
    text = f"{months // 13:04d}-{months % 13:02d}-{day:02d}"
    if kind == DATE:
        return text
    return f"{text} {rest >> 12 & 31:02d}:{rest >> 6 & 63:02d}:{rest & 63:02d}.{micros:06d}"
