"""Where a key or value names its registered schema. Pure.

    0 · id 4 · content                              Confluent
    1 · GUID 16 · content                           Confluent
    header __value_schema_id: 1 · GUID 16           Confluent; the value is the content
    {"schemaId":id,"payload":content}               Apicurio's ExtJsonConverter
    0 · 0000 · id 4 · content                       Apicurio's ids of eight bytes: not supported
    3 · compression 1 · UUID 16 · content           AWS Glue: not supported

An id of four bytes starts at 1, so that four zero bytes are the start of an id of eight bytes.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Headers, Message
from airflow_cdc_provider.core.log.registered_schemas import OF_APICURIO

WITH_ID, WITH_GUID, GLUE = 0, 1, 3
ID_END, GUID_END = 5, 17
GLUE_COMPRESSIONS = (0, 5)
NO_ID = bytes(4)
IN_JSON = re.compile(rb'\s*\{\s*"schemaId"\s*:\s*(\d{1,18})\s*,\s*"payload"\s*:\s*(?=\{)')


class Side(NamedTuple):
    """The keys or the values of messages."""

    name: str

    @property
    def header(self) -> str:
        return f"__{self.name}_schema_id"


KEY, VALUE = Side("key"), Side("value")


class Framed(NamedTuple):
    """``schema_id``: see ``registered_schema_path``. ``content``: of Protobuf, with the message indexes."""

    schema_id: str
    content: bytes


def framed(data: bytes, headers: Headers, header: str) -> Framed | None:
    """``header``: that of the key or of the value. None if the data name no schema. Raises DecodeError for formats that
    are not supported."""
    for name, text in headers:
        if name == header:
            schema_id, indexes = _split(text or b"")
            return Framed(schema_id, indexes + data)
    if not data:
        return None
    if data[0] > GLUE:
        return _in_json(data)
    if data[0] in (WITH_ID, WITH_GUID):
        return Framed(*_split(data))
    if data[0] == GLUE and data[1:2] and data[1] in GLUE_COMPRESSIONS:
        raise DecodeError(NO_SCHEMA, "the message has the header of AWS Glue's schema registry, which is not supported")
    return None


def names_schema(message: Message) -> bool:
    """Whether a key or value may name a registered schema."""
    return starts_with_id(message) or any(part and _in_json(part) for part in (message.key, message.value))


def starts_with_id(message: Message) -> bool:
    """Whether a key or value may be no JSON, or a header names a schema."""
    starts = any(part and part[0] <= GLUE for part in (message.key, message.value))
    return starts or has_header(message.headers, KEY.header) or has_header(message.headers, VALUE.header)


def has_header(headers: Headers, header: str) -> bool:
    return header in [name for name, _ in headers]


def usage(message: Message, side: Side) -> str:
    """The message that names a schema, and the schema's subject if the converter has the default name strategy."""
    where = f"the {side.name} of {message.channel}, offset {message.offset}"
    return f"{where} (subject {message.topic}-{side.name}, with the default name strategy)"


def _in_json(data: bytes) -> Framed | None:
    """None for a row with such columns: it has no object as its payload, since documents are texts."""
    match, whole = IN_JSON.match(data), data.rstrip()
    if match is None or not whole.endswith(b"}"):
        return None
    return Framed(f"{OF_APICURIO}{int(match[1])}", whole[match.end() : -1])


def _split(data: bytes) -> tuple[str, bytes]:
    if data[:1] == b"\0" and len(data) >= ID_END:
        if data[1:ID_END] == NO_ID:
            raise DecodeError(
                NO_SCHEMA,
                "a schema id of eight bytes, which is not supported: configure the converter to write content ids of "
                "four bytes (`apicurio.registry.id-handler`)",
            )
        return str(int.from_bytes(data[1:ID_END], "big")), data[ID_END:]
    if data[:1] == b"\1" and len(data) >= GUID_END:
        return str(UUID(bytes=data[1:GUID_END])), data[GUID_END:]
    raise DecodeError(NO_SCHEMA, "the message ends within its schema id")
