"""Registered schemas: from staging, or else from the registry, which then need not be asked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema, SchemaFiles


class SchemaRegistry(Protocol):
    @property
    def address(self) -> str: ...

    def fetch(self, schema_id: str, used_by: str) -> RegisteredSchema:
        """``used_by``: the message that names the schema, for errors. Raises CdcError."""


@dataclass(frozen=True)
class RegisteredSchemas:
    registry: SchemaRegistry
    files: SchemaFiles

    def get(self, schema_id: str, used_by: str) -> RegisteredSchema:
        """Raises the errors of ``fetch``."""
        schema = self.files.registered_schema(schema_id)
        if schema is None:
            schema = self.registry.fetch(schema_id, used_by)
            self.files.write_registered_schema(schema_id, schema)
        return schema

    def problem(self, schema_id: str, used_by: str) -> Problem | None:
        """Why the registry cannot be used for this schema now, although it may be in staging."""
        try:
            registered = self.registry.fetch(schema_id, used_by)
        except CdcError as error:
            return error.problems[0]
        known = self.files.registered_schema(schema_id)
        if known is None or known == registered:
            return None
        return Problem(
            "SRC111",
            f"the schema registry has another schema with the id {schema_id} than before",
            where=f"{self.registry.address}, schema id {schema_id} of {used_by}",
            found="a schema that differs from the one in the folder `registry` of staging",
            allowed="ids that name the same schema for ever",
            do="if the registry was set up again, let the connector write to new topics; if only its notation of "
            "schemas has changed, remove the folder `registry`",
            data="messages are decoded with the schema in staging",
        )
