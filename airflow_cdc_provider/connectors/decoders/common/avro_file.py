"""An Avro container file, record by record, each with its own bytes. Pure.

Times stay the numbers they are: a library that turns them into dates stumbles over files whose numbers are no dates.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastavro import parse_schema, schemaless_reader

from airflow_cdc_provider.connectors.decoders.common.avro_codecs import CODECS, unpacked
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, NOT_JSON, DecodeError

MAGIC = b"Obj\x01"
SYNC_BYTES = 16


class AvroRecord(NamedTuple):
    """``raw`` are the bytes it was written as."""

    raw: bytes
    value: dict[str, Any]


@dataclass(frozen=True)
class AvroFile:
    """``text`` is the schema's own. ``blocks`` is where the first block begins."""

    schema: dict[str, Any]
    text: str
    codec: str
    sync: bytes
    blocks: int
    data: bytes

    def records(self) -> Iterator[AvroRecord]:
        """Raises DecodeError where the rest of the file cannot be read; what came before is good."""
        parsed = parse_schema(without_logical_types(self.schema))
        for content, count in self._blocks():
            stream = io.BytesIO(content)
            for _ in range(count):
                begin = stream.tell()
                try:
                    value = schemaless_reader(stream, parsed, None)
                # Bytes of another schema make a reader stumble in any way there is.
                except Exception as error:
                    raise DecodeError(NOT_JSON, f"a record does not fit its schema ({type(error).__name__})") from error
                yield AvroRecord(content[begin : stream.tell()], _as_record(value))
            if stream.tell() != len(content):
                raise DecodeError(NOT_JSON, "more bytes in a block than its records have")

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        at = self.blocks
        while at < len(self.data):
            count, at = _long(self.data, at)
            size, at = _long(self.data, at)
            content = self.data[at : at + size] if size >= 0 else b""
            at += size
            if count < 0 or size < 0 or len(content) != size or self.data[at : at + SYNC_BYTES] != self.sync:
                raise DecodeError(NOT_JSON, "the file ends in the middle of a block, or a block is damaged")
            at += SYNC_BYTES
            yield unpacked(self.codec, content), count


def open_file(data: bytes) -> AvroFile:
    """Raises DecodeError where the file does not say how to read it."""
    about: dict[str, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = _long(data, at)
        if not count:
            break
        if count < 0:
            _, at = _long(data, at)
        for _ in range(min(abs(count), len(data))):
            name, at = _bytes(data, at)
            about[name.decode("utf-8", "replace")], at = _bytes(data, at)
    codec = about.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in CODECS:
        raise DecodeError(NO_SCHEMA, f"the file is packed in a way that is not known here ({', '.join(CODECS)} are)")
    try:
        text = about["avro.schema"].decode()
        schema = json.loads(text)
        parse_schema(without_logical_types(schema))
    # A schema may be wrong in any way there is.
    except Exception as error:
        raise DecodeError(NO_SCHEMA, "the file's schema cannot be read") from error
    if not isinstance(schema, dict) or len(data) < at + SYNC_BYTES:
        raise DecodeError(NO_SCHEMA, "the file's schema is not that of a record, or the file ends in its head")
    return AvroFile(schema, text, codec, data[at : at + SYNC_BYTES], at + SYNC_BYTES, data)


def first_block(data: bytes) -> bytes | None:
    """The beginning of a file as a file of its own: its head and its first block; None where these are not whole."""
    try:
        blocks = open_file(data).blocks
        _, at = _long(data, blocks)
        size, at = _long(data, at)
    except DecodeError:
        return None
    end = at + size + SYNC_BYTES
    return data[:end] if size >= 0 and end <= len(data) else None


def one_record(raw: bytes, text: str) -> dict[str, Any]:
    """A record from its bytes and the text of its schema. Raises DecodeError."""
    try:
        value = schemaless_reader(io.BytesIO(raw), parse_schema(without_logical_types(json.loads(text))), None)
    # As above.
    except Exception as error:
        raise DecodeError(NOT_JSON, "the record does not fit its schema") from error
    return _as_record(value)


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: without_logical_types(one) for name, one in schema.items() if name != "logicalType"}
    if isinstance(schema, list):
        return [without_logical_types(one) for one in schema]
    return schema


def field_of(schema: Mapping[str, Any], name: str) -> Any:
    """The type of a record's field; of a type or nothing, the type."""
    fields = schema.get("fields")
    for field in fields if isinstance(fields, list) else ():
        if field.get("name") == name:
            return beside_null(field.get("type"))
    return None


def beside_null(kind: Any) -> Any:
    if isinstance(kind, list):
        branches = [one for one in kind if one != "null"]
        return branches[0] if len(branches) == 1 else branches
    return kind


def _as_record(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(NO_SCHEMA, "a file whose values are no records")
    return value


def _long(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 64:
        if at >= len(data):
            raise DecodeError(NOT_JSON, "the file ends in the middle of a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise DecodeError(NOT_JSON, "a number longer than 64 bits")


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    if not 0 <= size <= len(data) - at:
        raise DecodeError(NOT_JSON, "the file ends in the middle of its head")
    return data[at : at + size], at + size
