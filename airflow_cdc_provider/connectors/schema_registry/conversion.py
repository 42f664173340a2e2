"""Messages with a registered schema, as the JSON messages that Connect's own converter would have sent.

Decoders, the detection of snapshots and the quarantine work on this JSON. A key or value that does not match its
schema stays as it is, and the message says why: the decoder makes a bad record of it. Avro without arrays and maps also
becomes columns, for decoders that read these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import SMALL_BATCH, Message, MessageColumns
from airflow_cdc_provider.connectors.schema_registry.avro import AvroReader
from airflow_cdc_provider.connectors.schema_registry.client import AVRO, CONNECT, JSON, PROTOBUF
from airflow_cdc_provider.connectors.schema_registry.column_conversion import message_columns
from airflow_cdc_provider.connectors.schema_registry.connect_schema import ConnectSchemaReader
from airflow_cdc_provider.connectors.schema_registry.framing import (
    ID_END,
    KEY,
    VALUE,
    WITH_ID,
    Side,
    framed,
    has_header,
    usage,
)
from airflow_cdc_provider.connectors.schema_registry.json_schema import JsonSchemaReader
from airflow_cdc_provider.connectors.schema_registry.protobuf import ProtobufReader
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema

BATCH_MESSAGES = 4096
Content = tuple[int, bytes]
"""The index of a message in its batch, and the content of its key or value."""


class ContentReader(Protocol):
    """Reads contents of one schema. ``schema``: the text of the Connect schema; empty if it is unknown."""

    schema: str

    def read(self, content: bytes) -> bytes:
        """The payload as JSON. Raises DecodeError."""

    def read_many(self, contents: Sequence[bytes]) -> list[bytes | None]:
        """None for contents that must be read one by one."""


class _Converted:
    """The keys or values of a batch with their schemas. ``reasons``: index of a message → why it cannot be
    converted."""

    def __init__(self, parts: Sequence[bytes | None]) -> None:
        self.parts = list(parts)
        self.schemas = [""] * len(parts)
        self.reasons: dict[int, str] = {}


class MessageConverter:
    """Caches a reader per schema."""

    def __init__(self, schemas: RegisteredSchemas) -> None:
        self.schemas = schemas
        self._readers: dict[tuple[str, Side], ContentReader | DecodeError] = {}

    def messages(self, messages: Iterable[Message]) -> Iterator[Message]:
        """In the same order. Raises the errors of ``RegisteredSchemas.get``."""
        remaining = iter(messages)
        while batch := list(islice(remaining, BATCH_MESSAGES)):
            yield from self._batch(batch)

    def columns(self, messages: Iterable[Message]) -> tuple[list[MessageColumns], list[Message]]:
        """The messages that can be read as columns, and the others as they are. Raises as ``messages``."""
        return message_columns(messages, self._reader_of)

    def _reader_of(self, message: Message, side: Side) -> ContentReader | DecodeError:
        """Of a message with a schema id in its content."""
        try:
            found = framed((message.value if side is VALUE else message.key) or b"", (), side.header)
        except DecodeError as error:
            return error
        assert found is not None
        return self._reader(found.schema_id, message, side)

    def _batch(self, batch: Sequence[Message]) -> Iterator[Message]:
        """Field by field: a loop over the messages would take as long as the conversion of a column."""
        given_values, given_keys, headers, topics, channels, offsets, times, *_, by_line = zip(*batch, strict=True)
        values = self._converted(batch, given_values, VALUE)
        keys = self._converted(batch, given_keys, KEY)
        reasons = [""] * len(batch)
        for index, reason in (*keys.reasons.items(), *values.reasons.items()):
            reasons[index] = reason
        kept = headers, topics, channels, offsets, times
        fields = zip(values.parts, keys.parts, *kept, reasons, values.schemas, keys.schemas, by_line, strict=True)
        return map(Message._make, fields)

    def _converted(self, batch: Sequence[Message], parts: Sequence[bytes | None], side: Side) -> _Converted:
        converted = _Converted(parts)
        for schema_id, contents in _by_schema(batch, parts, side, converted.reasons).items():
            reader = self._reader(schema_id, batch[contents[0][0]], side)
            _convert(reader, contents, converted)
        return converted

    def _reader(self, schema_id: str, message: Message, side: Side) -> ContentReader | DecodeError:
        reader = self._readers.get((schema_id, side))
        if reader is None:
            schema = self.schemas.get(schema_id, usage(message, side))
            try:
                reader = content_reader(schema, side is KEY)
            except DecodeError as error:
                reader = error
            self._readers[schema_id, side] = reader
        return reader


def content_reader(schema: RegisteredSchema, is_key: bool) -> ContentReader:
    """Raises DecodeError if the schema is not supported."""
    if schema.kind == AVRO:
        return AvroReader(schema)
    if schema.kind == JSON:
        return JsonSchemaReader(schema)
    if schema.kind == CONNECT:
        return ConnectSchemaReader(schema)
    if schema.kind == PROTOBUF:
        return ProtobufReader(schema, is_key)
    raise DecodeError(NO_SCHEMA, f"a schema of another type than {AVRO}, {JSON} and {PROTOBUF} is registered")


def _by_schema(
    batch: Sequence[Message], parts: Sequence[bytes | None], side: Side, reasons: dict[int, str]
) -> dict[str, list[Content]]:
    """Schema id → the contents with this schema. ``reasons``: receives those of messages that name none validly."""
    by_schema: defaultdict[str, list[Content]] = defaultdict(list)
    ids: dict[bytes, list[Content]] = {}
    header = side.header
    in_headers = any(message.headers and has_header(message.headers, header) for message in batch)
    for index, part in enumerate(parts):
        if part is None:
            continue
        if not in_headers and (known := ids.get(part[:ID_END])) is not None:
            known.append((index, part[ID_END:]))
            continue
        try:
            found = framed(part, batch[index].headers, header)
        except DecodeError as error:
            reasons[index] = str(error)
            continue
        if found is not None:
            contents = by_schema[found.schema_id]
            contents.append((index, found.content))
            if part[0] == WITH_ID:
                ids[part[:ID_END]] = contents
    return by_schema


def _convert(reader: ContentReader | DecodeError, contents: Sequence[Content], converted: _Converted) -> None:
    if isinstance(reader, DecodeError):
        converted.reasons |= {index: str(reader) for index, _ in contents}
        return
    many = len(contents) > SMALL_BATCH
    texts = reader.read_many([content for _, content in contents]) if many else [None] * len(contents)
    for (index, content), text in zip(contents, texts, strict=True):
        if text is None:
            try:
                text = reader.read(content)
            except DecodeError as error:
                converted.reasons[index] = str(error)
                continue
        converted.parts[index], converted.schemas[index] = text, reader.schema
