"""An Avro container file, record by record, each with its own bytes. Pure.

Logical types are ignored: a library that converts times into dates fails on values outside the calendar.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastavro import parse_schema, schemaless_reader

from airflow_cdc_provider.connectors.decoders.common.avro_codecs import CODECS, decompress
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, NOT_JSON, DecodeError

MAGIC = b"Obj\x01"
SYNC_BYTES = 16


class AvroRecord(NamedTuple):
    """``raw``: the bytes of the record in the file."""

    raw: bytes
    value: dict[str, Any]


@dataclass(frozen=True)
class AvroFile:
    """``text``: the JSON text of the schema. ``blocks``: the offset of the first block."""

    schema: dict[str, Any]
    text: str
    codec: str
    sync: bytes
    blocks: int
    data: bytes

    def records(self) -> Iterator[AvroRecord]:
        """Raises DecodeError if the rest of the file cannot be read; records yielded until then are valid."""
        parsed = parse_schema(without_logical_types(self.schema))
        for content, count in self._blocks():
            stream = io.BytesIO(content)
            for _ in range(count):
                start = stream.tell()
                try:
                    value = schemaless_reader(stream, parsed, None)
                # Bytes of another schema can raise any exception in the reader.
                except Exception as error:
                    raise DecodeError(
                        NOT_JSON, f"a record does not match its schema ({type(error).__name__})"
                    ) from error
                yield AvroRecord(content[start : stream.tell()], _as_record(value))
            if stream.tell() != len(content):
                raise DecodeError(NOT_JSON, "a block has more bytes than its records")

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        at = self.blocks
        while at < len(self.data):
            count, at = read_long(self.data, at)
            size, at = read_long(self.data, at)
            content = self.data[at : at + size] if size >= 0 else b""
            at += size
            if count < 0 or size < 0 or len(content) != size or self.data[at : at + SYNC_BYTES] != self.sync:
                raise DecodeError(NOT_JSON, "the file ends within a block, or a block is damaged")
            at += SYNC_BYTES
            yield decompress(self.codec, content), count


def open_file(data: bytes) -> AvroFile:
    """Raises DecodeError if the header is damaged, or its codec or schema is not supported."""
    metadata: dict[str, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = read_long(data, at)
        if not count:
            break
        if count < 0:
            _, at = read_long(data, at)
        for _ in range(min(abs(count), len(data))):
            name, at = _bytes(data, at)
            metadata[name.decode("utf-8", "replace")], at = _bytes(data, at)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in CODECS:
        raise DecodeError(NO_SCHEMA, f"the file has an unsupported codec; supported: {', '.join(CODECS)}")
    try:
        text = metadata["avro.schema"].decode()
        schema = json.loads(text)
        parse_schema(without_logical_types(schema))
    # An invalid schema can raise any exception.
    except Exception as error:
        raise DecodeError(NO_SCHEMA, "the schema in the file cannot be read") from error
    if not isinstance(schema, dict) or len(data) < at + SYNC_BYTES:
        raise DecodeError(NO_SCHEMA, "the schema in the file is not a record, or the file ends in its header")
    return AvroFile(schema, text, codec, data[at : at + SYNC_BYTES], at + SYNC_BYTES, data)


def first_block(data: bytes) -> bytes | None:
    """The header and first block of a file, as a file of its own; None if ``data`` does not contain both in full."""
    try:
        blocks = open_file(data).blocks
        _, at = read_long(data, blocks)
        size, at = read_long(data, at)
    except DecodeError:
        return None
    end = at + size + SYNC_BYTES
    return data[:end] if size >= 0 and end <= len(data) else None


def read_record(raw: bytes, text: str) -> dict[str, Any]:
    """Decodes a record from its bytes and the text of its schema. Raises DecodeError."""
    try:
        value = schemaless_reader(io.BytesIO(raw), parse_schema(without_logical_types(json.loads(text))), None)
    # Bytes of another schema can raise any exception in the reader.
    except Exception as error:
        raise DecodeError(NOT_JSON, "the record does not match its schema") from error
    return _as_record(value)


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: without_logical_types(value) for name, value in schema.items() if name != "logicalType"}
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    return schema


def field_of(schema: Mapping[str, Any], name: str) -> Any:
    """The type of a field of a record, without its null branch; None if there is no such field."""
    fields = schema.get("fields")
    for field in fields if isinstance(fields, list) else ():
        if field.get("name") == name:
            return without_null(field.get("type"))
    return None


def without_null(kind: Any) -> Any:
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        return branches[0] if len(branches) == 1 else branches
    return kind


def _as_record(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(NO_SCHEMA, "a value in the file is not a record")
    return value


def read_long(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 64:
        if at >= len(data):
            raise DecodeError(NOT_JSON, "the content ends within a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise DecodeError(NOT_JSON, "a number has more than 64 bits")


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise DecodeError(NOT_JSON, "the file ends within its header")
    return data[at : at + size], at + size
