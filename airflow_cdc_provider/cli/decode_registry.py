"""The schemas of saved messages that contain ids: of a registry, or of a folder such as ``registry/`` in staging."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from airflow_cdc_provider.connectors.schema_registry.client import RegistryClient
from airflow_cdc_provider.connectors.schema_registry.conversion import MessageConverter
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.core.errors import CommandRefused, NotFound
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.hooks.connections import connection_info


def message_converter(registry: str) -> MessageConverter:
    """``registry``: a folder, or the id of an Airflow connection."""
    if Path(registry).is_dir():
        return MessageConverter(RegisteredSchemas(_FolderOnly(registry), _SchemaFolder(Path(registry))))
    return MessageConverter(RegisteredSchemas(RegistryClient(connection_info(registry)), _InMemory()))


@dataclass(frozen=True)
class _SchemaFolder:
    folder: Path

    def registered_schema(self, schema_id: str) -> RegisteredSchema | None:
        """Raises CommandRefused (CLI022) if the file is not a registered schema."""
        file = self.folder / f"{schema_id}.json"
        if not file.is_file():
            return None
        try:
            return from_plain(RegisteredSchema, json.loads(file.read_bytes()))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CommandRefused.of(
                "CLI022",
                "a file does not contain a registered schema",
                where=str(file),
                found=type(error).__name__,
                allowed='{"kind": "AVRO", "text": "…", "references": [{"name": …, "text": "…"}]}',
                do="copy it from the folder `registry` of staging",
            ) from error

    def write_registered_schema(self, schema_id: str, schema: RegisteredSchema) -> None:
        """The folder is only read."""


@dataclass(frozen=True)
class _FolderOnly:
    """In place of a registry."""

    address: str

    def fetch(self, schema_id: str, used_by: str) -> RegisteredSchema:
        """Raises NotFound (CLI005)."""
        raise NotFound.of(
            "CLI005",
            f"there is no schema with the id {schema_id}",
            where=f"{self.address}/{schema_id}.json, for {used_by}",
            found="no such file",
            allowed="a folder with a file per schema id, or the id of an Airflow connection",
        )


@dataclass(frozen=True)
class _InMemory:
    schemas: dict[str, RegisteredSchema] = field(default_factory=dict)

    def registered_schema(self, schema_id: str) -> RegisteredSchema | None:
        return self.schemas.get(schema_id)

    def write_registered_schema(self, schema_id: str, schema: RegisteredSchema) -> None:
        self.schemas[schema_id] = schema
