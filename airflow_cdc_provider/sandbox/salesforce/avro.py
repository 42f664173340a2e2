"""The values of an event in Avro's binary form. A null costs one byte and no time, so an update costs what it holds.

Written by hand because a general writer looks at every field of every event; the tests hold it against one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Write = Callable[[Any], bytes]
NULL = b"\x00"
FIRST_BRANCH, SECOND_BRANCH = b"\x02", b"\x04"


def integer(value: int) -> bytes:
    """An int or a long: zigzag, seven bits to a byte, the low ones first."""
    number = (value << 1) ^ (value >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


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
    """A record whose members may all be null."""

    def write(value: Mapping[str, Any]) -> bytes:
        return b"".join([nullable(value.get(name), one) for name, one in members])

    return write
