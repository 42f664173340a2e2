"""GTIDs with a tag, in the format of MySQL 8.3 and later: numbered fields of numbers with variable length. Pure."""

from __future__ import annotations

from uuid import UUID

FLAGS, SERVER, NUMBER, TAG = 0, 1, 2, 3


def tagged_gtid(body: bytes) -> str:
    """``server:tag:number``, from the event of type 42. Raises IndexError if it is damaged."""
    at = 0
    for _ in range(3):  # the version of the format, the size, the last field that a reader must know
        _, at = _number(body, at)
    at = _field(body, at, FLAGS)
    at = _field(body, at + 1, SERVER)
    server = bytearray()
    while len(server) < 16:
        byte, at = _number(body, at)
        server.append(byte)
    zigzag, at = _number(body, _field(body, at, NUMBER))
    length, at = _number(body, _field(body, at, TAG))
    tag = body[at : at + length].decode()
    return f"{UUID(bytes=bytes(server))}:{tag}:{(zigzag >> 1) ^ -(zigzag & 1)}"


def _field(body: bytes, at: int, number: int) -> int:
    """The position behind the number of the field, which must be this one."""
    found, at = _number(body, at)
    if found != number:
        raise IndexError(f"field {found} in place of {number}")
    return at


def _number(body: bytes, at: int) -> tuple[int, int]:
    """An unsigned number, and the position behind it: its first byte has a 1 bit for each byte that follows."""
    more = 0
    while more < 8 and body[at] >> more & 1:
        more += 1
    end = at + 1 + more
    if end > len(body):
        raise IndexError("a number that ends too early")
    return int.from_bytes(body[at:end], "little") >> (more + 1 if more < 8 else 8), end
