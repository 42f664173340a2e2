"""Lines out of pieces of a file, packed with gzip or not. Pure; holds one piece and one line at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

GZIP = b"\x1f\x8b"
GZIP_WINDOW = 31
MOST_AT_ONCE = 4 << 20
MOST_LINE = 129 << 20
"""No decoder reads so long a message; a file without line ends must not fill the memory."""


class Damaged(Exception):
    """What is packed cannot be unpacked from here on, or a line does not end."""


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Without their ends; the last one, too, where it has none. Raises Damaged behind the last good line, also where
    the pieces raise it."""
    rest = b""
    for piece in pieces:
        if b"\n" not in piece:
            rest += piece
        else:
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        if len(rest) > MOST_LINE:
            raise Damaged
    if rest:
        yield rest


def unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A file may be several packed ones, one behind the other."""
    all_pieces = iter(pieces)
    start = next(all_pieces, b"")
    if not start.startswith(GZIP):
        yield start
        yield from all_pieces
        return
    unpacker, ended = zlib.decompressobj(GZIP_WINDOW), True
    for piece in chain([start], all_pieces):
        left = piece
        while left:
            if ended:
                unpacker = zlib.decompressobj(GZIP_WINDOW)
            try:
                plain = unpacker.decompress(left, MOST_AT_ONCE)
            except zlib.error as error:
                raise Damaged from error
            yield plain
            ended = unpacker.eof
            left = unpacker.unused_data if ended else unpacker.unconsumed_tail
    if not ended:
        raise Damaged
