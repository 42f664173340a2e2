"""Compression codecs of Avro container files. Pure."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NOT_JSON, TOO_LARGE, DecodeError

MAX_BYTES = 512 * 1024 * 1024
DEFLATE_WINDOW = -15
CHECKSUM_BYTES = 4
SIZE_BYTES = 5


class Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompress(codec: str, block: bytes) -> bytes:
    """Raises DecodeError; ``codec`` is one of ``CODECS``."""
    try:
        plain = CODECS[codec](block)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        raise DecodeError(NOT_JSON, "a block cannot be decompressed") from error
    if len(plain) > MAX_BYTES:
        raise DecodeError(TOO_LARGE, f"a block has more than {MAX_BYTES:,} bytes")
    return plain


def _unchanged(block: bytes) -> bytes:
    return block


def _limited(make: Callable[[], Decompressor]) -> Callable[[bytes], bytes]:
    return lambda block: make().decompress(block, MAX_BYTES + 1)


def _zstandard(block: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read(MAX_BYTES + 1))


def _snappy(block: bytes) -> bytes:
    """The block is a varint of the decompressed size, the content, and a checksum."""
    content, checksum = block[:-CHECKSUM_BYTES], block[-CHECKSUM_BYTES:]
    size = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(_size_bytes(content)))
    if size > MAX_BYTES:
        raise DecodeError(TOO_LARGE, f"a block has more than {MAX_BYTES:,} bytes")
    plain = bytes(pa.Codec("snappy").decompress(content, size))
    if zlib.crc32(plain) != int.from_bytes(checksum, "big"):
        raise ValueError("checksum")
    return plain


def _size_bytes(content: bytes) -> bytes:
    end = next((n for n, byte in enumerate(content[:SIZE_BYTES]) if byte < 0x80), SIZE_BYTES)
    return content[: end + 1]


CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": _unchanged,
    "deflate": _limited(lambda: zlib.decompressobj(DEFLATE_WINDOW)),
    "bzip2": _limited(bz2.BZ2Decompressor),
    "xz": _limited(lzma.LZMADecompressor),
    "zstandard": _zstandard,
    "snappy": _snappy,
}
