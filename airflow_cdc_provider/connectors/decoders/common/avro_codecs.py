"""The ways in which blocks of Avro files are packed. Pure."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NOT_JSON, TOO_LARGE, DecodeError

MOST_BYTES = 512 * 1024 * 1024
DEFLATE_WINDOW = -15
CHECKSUM_BYTES = 4
SIZE_BYTES = 5


class Unpacker(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpacked(codec: str, block: bytes) -> bytes:
    """Raises DecodeError; ``codec`` is one of ``CODECS``."""
    try:
        plain = CODECS[codec](block)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        raise DecodeError(NOT_JSON, "a block cannot be unpacked") from error
    if len(plain) > MOST_BYTES:
        raise DecodeError(TOO_LARGE, f"a block of more than {MOST_BYTES:,} bytes")
    return plain


def _as_it_is(block: bytes) -> bytes:
    return block


def _by(make: Callable[[], Unpacker]) -> Callable[[bytes], bytes]:
    return lambda block: make().decompress(block, MOST_BYTES + 1)


def _zstandard(block: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read(MOST_BYTES + 1))


def _snappy(block: bytes) -> bytes:
    """The size of what is packed stands before it, a checksum behind it."""
    content, told = block[:-CHECKSUM_BYTES], block[-CHECKSUM_BYTES:]
    size = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(_size_of(content)))
    if size > MOST_BYTES:
        raise DecodeError(TOO_LARGE, f"a block of more than {MOST_BYTES:,} bytes")
    plain = bytes(pa.Codec("snappy").decompress(content, size))
    if zlib.crc32(plain) != int.from_bytes(told, "big"):
        raise ValueError("checksum")
    return plain


def _size_of(content: bytes) -> bytes:
    end = next((n for n, byte in enumerate(content[:SIZE_BYTES]) if byte < 0x80), SIZE_BYTES)
    return content[: end + 1]


CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": _as_it_is,
    "deflate": _by(lambda: zlib.decompressobj(DEFLATE_WINDOW)),
    "bzip2": _by(bz2.BZ2Decompressor),
    "xz": _by(lzma.LZMADecompressor),
    "zstandard": _zstandard,
    "snappy": _snappy,
}
