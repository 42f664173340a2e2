"""Contents of messages of Apicurio's ExtJsonConverter: JSON already, with a schema in Connect's own notation. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema


class ConnectSchemaReader:
    """Raises DecodeError if the schema is not one of Connect."""

    def __init__(self, schema: RegisteredSchema) -> None:
        try:
            connect = json.loads(schema.text)
        except ValueError as error:
            raise DecodeError(NO_SCHEMA, "the registered schema is not JSON") from error
        if not isinstance(connect, dict) or connect.get("type") != "struct":
            raise DecodeError(NO_SCHEMA, "the registered schema is not one of Connect's structs")
        self.schema = dumps(connect)

    def read(self, content: bytes) -> bytes:
        """Damaged content is detected when the message is decoded."""
        return content

    def read_many(self, contents: Sequence[bytes]) -> list[bytes | None]:
        return list(contents)
