"""Messages of PostgreSQL's protocol, as far as the stand-in for Redshift reads and writes them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator


def receive(one: socket.socket, length: int) -> bytes:
    parts = b""
    while len(parts) < length:
        part = one.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise ConnectionError
        parts += part
    return parts


def receive_message(one: socket.socket) -> tuple[bytes, bytes]:
    head = receive(one, 5)
    return head[:1], receive(one, struct.unpack("!I", head[1:])[0] - 4)


def send(one: socket.socket, kind: bytes, body: bytes) -> None:
    one.sendall(message(kind, body))


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def row_description(body: bytes) -> Iterator[tuple[str, int]]:
    position = 2
    for _ in range(struct.unpack("!H", body[:2])[0]):
        end = body.index(b"\0", position)
        yield body[position:end].decode(), struct.unpack("!I", body[end + 7 : end + 11])[0]
        position = end + 19


def data_row(body: bytes) -> Iterator[str | None]:
    position = 2
    for _ in range(struct.unpack("!H", body[:2])[0]):
        (length,) = struct.unpack("!i", body[position : position + 4])
        position += 4
        yield None if length < 0 else body[position : position + length].decode()
        position += max(length, 0)


def error_fields(body: bytes) -> list[str]:
    """Message, state, detail."""
    fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
    return [fields.get(b"M", ""), fields.get(b"C", ""), fields.get(b"D", "")]


def as_redshift(body: bytes) -> bytes:
    """Serialization errors have no state of their own."""
    if error_fields(body)[1] != "40001":
        return body
    fields = {"S": "ERROR", "C": "XX000", "M": "1023", "D": "Serializable isolation violation on table - 1"}
    return b"".join(name.encode() + text.encode() + b"\0" for name, text in fields.items()) + b"\0"
