"""Splits the chunks of a file, which may be gzip-compressed, into lines. Pure; keeps one chunk and one line in
memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

GZIP = b"\x1f\x8b"
GZIP_WINDOW = 31
MAX_DECOMPRESSED_BYTES = 4 << 20
MAX_LINE_BYTES = 129 << 20
"""Longer than any message that a decoder reads. Limits the memory for a file without line ends."""


class DamagedFile(Exception):
    """The rest of the file cannot be decompressed, or a line is too long."""


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their line ends, including an unterminated last line. Raises DamagedFile, also from ``chunks``,
    after the last good line."""
    rest = b""
    for chunk in chunks:
        if b"\n" not in chunk:
            rest += chunk
        else:
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
        if len(rest) > MAX_LINE_BYTES:
            raise DamagedFile
    if rest:
        yield rest


def decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields plain data unchanged. A file may consist of several gzip members."""
    remaining = iter(chunks)
    start = next(remaining, b"")
    if not start.startswith(GZIP):
        yield start
        yield from remaining
        return
    decompressor, ended = zlib.decompressobj(GZIP_WINDOW), True
    for chunk in chain([start], remaining):
        data = chunk
        while data:
            if ended:
                decompressor = zlib.decompressobj(GZIP_WINDOW)
            try:
                plain = decompressor.decompress(data, MAX_DECOMPRESSED_BYTES)
            except zlib.error as error:
                raise DamagedFile from error
            yield plain
            ended = decompressor.eof
            data = decompressor.unused_data if ended else decompressor.unconsumed_tail
    if not ended:
        raise DamagedFile
