"""Contents of messages in Protobuf, as JSON without a schema. Pure.

Connect's ProtobufConverter drops the names of Debezium's types: a number and a time in microseconds are both ``int64``.
So the schemas of the tables must be declared, as for JSON without schemas.

The content starts with the path of its message type in the schema: the index of an outer type, then those of types
within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.avro_file import read_long
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, NOT_JSON, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.schema_registry.protobuf_files import file_descriptor
from airflow_cdc_provider.connectors.schema_registry.protobuf_values import MessageValues
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema
from airflow_cdc_provider.core.registry import load_library

MAX_INDEXES = 100


class ProtobufReader:
    """``is_key``: keys have no null fields. Raises DecodeError if the schema is not valid, NotInstalled (ENV010)."""

    schema = ""

    def __init__(self, schema: RegisteredSchema, is_key: bool) -> None:
        self._factory = load_library("google.protobuf.message_factory", "source", "registry")
        self._is_key = is_key
        self._values: dict[tuple[int, ...], MessageValues] = {}
        try:
            self._file = file_descriptor(schema)
        except NotInstalled:
            raise
        # An invalid schema can raise any exception.
        except Exception as error:
            what = f"the registered Protobuf schema is not valid ({type(error).__name__})"
            raise DecodeError(NO_SCHEMA, what) from error

    def read(self, content: bytes) -> bytes:
        """Raises DecodeError."""
        indexes, at = _indexes(content)
        values = self._values.get(indexes)
        if values is None:
            values = self._values[indexes] = MessageValues(self._descriptor(indexes), self._is_key)
        message = self._factory.GetMessageClass(values.descriptor)()
        try:
            message.ParseFromString(content[at:])
        except Exception as error:  # the class of the library's error has the name of ours
            raise DecodeError(NOT_JSON, "Protobuf that does not match its schema") from error
        return dumps(values.of(message)).encode()

    def read_many(self, contents: Sequence[bytes]) -> list[bytes | None]:
        return [None] * len(contents)

    def _descriptor(self, indexes: tuple[int, ...]) -> Any:
        types = list(self._file.message_types_by_name.values())
        for depth, index in enumerate(indexes):
            if not 0 <= index < len(types):
                raise DecodeError(NO_SCHEMA, "a message type that the registered Protobuf schema does not have")
            if depth == len(indexes) - 1:
                return types[index]
            types = list(types[index].nested_types)
        raise DecodeError(NO_SCHEMA, "the message names no message type")


def _indexes(content: bytes) -> tuple[tuple[int, ...], int]:
    """The path of the message type, and where the message starts. A single zero stands for the first type."""
    count, at = read_long(content, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise DecodeError(NO_SCHEMA, "invalid indexes of the message type")
    indexes = []
    for _ in range(count):
        index, at = read_long(content, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at
