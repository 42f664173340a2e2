"""Contents of messages in Avro, as the JSON that Connect's JsonConverter writes. Pure."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader

from airflow_cdc_provider.connectors.decoders.common.arrow_json import json_bytes
from airflow_cdc_provider.connectors.decoders.common.avro_file import without_logical_types
from airflow_cdc_provider.connectors.decoders.common.avro_names import resolve_names
from airflow_cdc_provider.connectors.decoders.common.connect_avro import form_of
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, NOT_JSON, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.schema_registry.avro_columns import field_reader, read_columns
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema


class AvroReader:
    """Raises DecodeError if the schema is not supported."""

    def __init__(self, schema: RegisteredSchema) -> None:
        try:
            avro = json.loads(schema.text)
            references = [json.loads(reference.text) for reference in schema.references]
            named: dict[str, dict[Any, Any]] = {}
            for reference in references:
                parse_schema(without_logical_types(reference), named_schemas=named)
            self._parsed = parse_schema(without_logical_types(avro), named_schemas=named)
        # An invalid schema can raise any exception.
        except Exception as error:
            raise DecodeError(NO_SCHEMA, f"the registered Avro schema is not valid ({type(error).__name__})") from error
        resolved = resolve_names(avro, references)
        form = form_of(resolved)
        self._to_json = form.to_json
        self.schema = dumps(form.schema)
        self._fields = field_reader(resolved)

    def read(self, content: bytes) -> bytes:
        """Raises DecodeError if the content does not match the schema."""
        stream = io.BytesIO(content)
        try:
            text = dumps(self._to_json(schemaless_reader(stream, self._parsed, None)))
        # Bytes of another schema can raise any exception in the reader.
        except Exception as error:
            raise DecodeError(NOT_JSON, f"Avro that does not match its schema ({type(error).__name__})") from error
        if stream.tell() != len(content):
            raise DecodeError(NOT_JSON, "Avro that is longer than its schema")
        return text.encode()

    def read_many(self, contents: Sequence[bytes]) -> list[bytes | None]:
        """None for contents that must be read one by one."""
        texts: list[bytes | None] = [None] * len(contents)
        if self._fields is not None:
            rows, columns = self.read_columns(contents)
            for row, text in zip(rows, json_bytes(columns), strict=True):
                texts[row] = text
        return texts

    @property
    def has_struct_columns(self) -> bool:
        """Whether contents are records without arrays and maps."""
        return self._fields is not None and pa.types.is_struct(self._fields.type)

    def read_columns(self, contents: Sequence[bytes]) -> tuple[list[int], pa.Array]:
        """The indexes of the contents that can be read together, and their values."""
        assert self._fields is not None
        return read_columns(self._fields, contents)
