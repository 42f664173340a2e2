"""The values of an event in Avro's binary encoding. A null takes one byte and no time.

A general writer visits every field of every event and is too slow. The tests compare both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Write = Callable[[Any], bytes]
NULL = b"\x00"
FIRST_BRANCH, SECOND_BRANCH = b"\x02", b"\x04"


def integer(value: int) -> bytes:
    """An int or a long, zigzag-encoded."""
    return varint((value << 1) ^ (value >> 63))


def varint(number: int) -> bytes:
    """Seven bits per byte, the low ones first. Protocol buffers have the same encoding."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def text(value: str) -> bytes:
    encoded = value.encode()
    return integer(len(encoded)) + encoded


def boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def double(value: float) -> bytes:
    return struct.pack("<d", value)


WRITERS: Mapping[str, Write] = {"string": text, "int": integer, "long": integer, "double": double, "boolean": boolean}


def nullable(value: Any, write: Write) -> bytes:
    """A union of null and one other type."""
    return NULL if value is None else FIRST_BRANCH + write(value)


def record(members: Sequence[tuple[str, Write]]) -> Write:
    """A record of nullable members."""

    def write(value: Mapping[str, Any]) -> bytes:
        return b"".join([nullable(value.get(name), write_member) for name, write_member in members])

    return write
