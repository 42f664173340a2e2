"""Schemas of a schema registry as they are kept in staging, one file per id:

    <staging>/<replicator>/registry/<id>.json

A registered schema never changes. So a message is decoded without the registry once its schemas are in staging.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

OF_APICURIO = "schemaId-"
"""The prefix of ids of Apicurio's own interface, which may be other numbers than those of Confluent's."""


@dataclass(frozen=True)
class ReferencedSchema:
    """``name``: by which other schemas refer to it."""

    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    """``kind``: ``AVRO``, ``JSON``, ``PROTOBUF``, or ``KCONNECT`` for Connect's own notation. ``text``: of a Protobuf
    schema, its file descriptor in base64. ``references``: all schemas that it refers to, also indirectly, each after
    those that it refers to itself."""

    kind: str
    text: str
    references: tuple[ReferencedSchema, ...] = ()


class SchemaFiles(Protocol):
    def registered_schema(self, schema_id: str) -> RegisteredSchema | None:
        """None if there is no file of this id."""

    def write_registered_schema(self, schema_id: str, schema: RegisteredSchema) -> None:
        """Several processes may write the same schema."""


def registered_schema_path(schema_id: str) -> str:
    """``schema_id``: a number, a GUID, or ``OF_APICURIO`` and a number."""
    return f"registry/{schema_id}.json"
