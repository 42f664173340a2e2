"""Registered schemas in memory, in place of staging, and a registry that counts its requests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fastavro import parse_schema, schemaless_writer

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.schema_registry.client import RegistryClient
from airflow_cdc_provider.connectors.schema_registry.conversion import MessageConverter
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema
from tests.connectors.formats.connect_writer import avro_of, binary


@dataclass
class SchemasInMemory:
    schemas: dict[str, RegisteredSchema] = field(default_factory=dict)

    def registered_schema(self, schema_id: str) -> RegisteredSchema | None:
        return self.schemas.get(schema_id)

    def write_registered_schema(self, schema_id: str, schema: RegisteredSchema) -> None:
        self.schemas[schema_id] = schema


@dataclass
class NoRegistry:
    """A registry that must not be asked."""

    address: str = "nowhere"

    def fetch(self, schema_id: str, used_by: str) -> RegisteredSchema:
        raise AssertionError(f"{schema_id} is not in staging: {used_by}")


def converter(connection: ConnectionInfo, files: SchemasInMemory | None = None) -> MessageConverter:
    return MessageConverter(RegisteredSchemas(RegistryClient(connection), files or SchemasInMemory()))


def offline(files: SchemasInMemory) -> MessageConverter:
    return MessageConverter(RegisteredSchemas(NoRegistry(), files))


def registered_avro(messages: Iterable[Message]) -> tuple[SchemasInMemory, list[Message]]:
    """Messages of Connect's JsonConverter, with schemas, as Avro; without a registry."""
    files = SchemasInMemory()
    numbers: dict[str, int] = {}
    parsed: dict[str, Any] = {}

    def encoded(data: bytes | None) -> bytes | None:
        if data is None:
            return None
        one = json.loads(data)
        text = json.dumps(one["schema"])
        if text not in numbers:
            avro = avro_of({**one["schema"], "optional": False}, set())
            numbers[text], parsed[text] = len(numbers) + 1, parse_schema(avro)
            files.write_registered_schema(str(numbers[text]), RegisteredSchema("AVRO", json.dumps(avro)))
        out = io.BytesIO(b"\0" + numbers[text].to_bytes(4, "big"))
        out.seek(0, io.SEEK_END)
        schemaless_writer(out, parsed[text], binary(one["schema"], one["payload"]))
        return out.getvalue()

    made = [message._replace(value=encoded(message.value), key=encoded(message.key)) for message in messages]
    return files, made
