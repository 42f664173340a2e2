"""Avro container files, written by fastavro: an independent writer."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from fastavro import block_reader, parse_schema, writer


def nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def schema(metadata: Sequence[dict[str, Any]], payload: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The envelope of a Datastream file."""
    return {
        "type": "record",
        "name": "datastream_event",
        "fields": [
            nullable("stream_name", "string"),
            nullable("read_method", "string"),
            nullable("object", "string"),
            nullable("schema_key", "string"),
            nullable("uuid", "string"),
            nullable("read_timestamp", logical("long", "timestamp-millis")),
            nullable("source_timestamp", logical("long", "timestamp-millis")),
            nullable("sort_keys", {"type": "array", "items": ["string", "long"]}),
            nullable("source_metadata", {"type": "record", "name": "metadata", "fields": list(metadata)}),
            nullable("payload", {"type": "record", "name": "row", "fields": list(payload)}),
        ],
    }


def file(avro_schema: Mapping[str, Any], events: Sequence[Mapping[str, Any]], codec: str = "null") -> bytes:
    written = io.BytesIO()
    writer(written, parse_schema(dict(avro_schema)), events, codec=codec, sync_marker=b"0123456789abcdef")
    return written.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.compress(block, wbits=-15),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": lambda block: bytes(pa.compress(block, "zstd")),
    "snappy": lambda block: bytes(pa.compress(block, "snappy")) + zlib.crc32(block).to_bytes(4, "big"),
}


def packed(plain: bytes, codec: str) -> bytes:
    """A file of ``file`` with its blocks compressed; done here because fastavro needs a library for each codec."""
    schema = json.loads(block_reader(io.BytesIO(plain)).metadata["avro.schema"])
    sync, out = b"0123456789abcdef", io.BytesIO()
    out.write(b"Obj\x01" + _long(2))
    for text in (b"avro.schema", json.dumps(schema).encode(), b"avro.codec", codec.encode()):
        out.write(_long(len(text)) + text)
    out.write(_long(0) + sync)
    for block in block_reader(io.BytesIO(plain)):
        content = PACKERS[codec](block.bytes_.getvalue())
        out.write(_long(block.num_records) + _long(len(content)) + content + sync)
    return out.getvalue()


def _long(number: int) -> bytes:
    zigzag, out = number << 1, bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def strings(*names: str) -> list[dict[str, Any]]:
    return [nullable(name, "string") for name in names]


MYSQL = [
    *strings("table", "database", "change_type", "log_file"),
    nullable("log_position", "long"),
    nullable("primary_keys", {"type": "array", "items": "string"}),
    nullable("is_deleted", "boolean"),
]
