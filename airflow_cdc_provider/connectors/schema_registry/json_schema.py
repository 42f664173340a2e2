"""Contents of messages with a JSON Schema: the content is JSON already, and the schema becomes that of Connect. Pure.

Connect's JsonSchemaConverter keeps the Connect type beside the JSON type, and the order of the fields:

    {"type": "integer", "title": "io.debezium.time.Date", "connect.version": 1, "connect.type": "int32",
     "connect.index": 3}

A field that may be null is ``oneOf`` null and its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema

TYPE, INDEX, PARAMETERS = "connect.type", "connect.index", "connect.parameters"
PRIMITIVES: Mapping[str, str] = {"integer": "int64", "number": "double", "boolean": "boolean", "string": "string"}
CONNECT_TYPES: Mapping[str, str] = {"float32": "float", "float64": "double"}
"""Names that differ in Connect's JSON."""
MAX_DEPTH = 100

JsonSchema = Mapping[str, Any]


class JsonSchemaReader:
    """Raises DecodeError if the schema is not supported."""

    def __init__(self, schema: RegisteredSchema) -> None:
        try:
            documents = {reference.name: json.loads(reference.text) for reference in schema.references}
            documents[""] = json.loads(schema.text)
            connect = _Documents(documents).connect_schema(documents[""], "", MAX_DEPTH)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, DecodeError):
                raise
            raise DecodeError(NO_SCHEMA, f"the registered JSON Schema is not valid ({type(error).__name__})") from error
        self.schema = dumps(connect)

    def read(self, content: bytes) -> bytes:
        """Damaged content is detected when the message is decoded."""
        return content

    def read_many(self, contents: Sequence[bytes]) -> list[bytes | None]:
        return list(contents)


class _Documents:
    """``documents``: by the name with which others refer to them; the schema itself has the empty name."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def connect_schema(self, schema: JsonSchema, document: str, depth: int) -> dict[str, Any]:
        """``document``: the name of the document that contains ``schema``."""
        if depth == 0:
            raise DecodeError(NO_SCHEMA, "the registered JSON Schema is recursive")
        if "$ref" in schema:
            return self.connect_schema(*self._referenced(schema["$ref"], document), depth - 1)
        if "oneOf" in schema:
            return self._union(schema["oneOf"], document, depth)
        kind = schema.get(TYPE) or schema["type"]
        connect: dict[str, Any] = {"type": _type_name(kind, schema), "optional": False}
        if isinstance(schema.get("title"), str):
            connect["name"] = schema["title"]
        if isinstance(schema.get(PARAMETERS), dict):
            connect["parameters"] = schema[PARAMETERS]
        match connect["type"]:
            case "struct":
                fields = sorted(schema.get("properties", {}).items(), key=lambda field: field[1].get(INDEX, 0))
                connect["fields"] = [
                    {**self.connect_schema(field, document, depth - 1), "field": name} for name, field in fields
                ]
            case "array":
                connect["items"] = self.connect_schema(schema["items"], document, depth - 1)
            case "map":
                connect["keys"] = {"type": "string", "optional": False}
                connect["values"] = self.connect_schema(schema["additionalProperties"], document, depth - 1)
        return connect

    def _union(self, branches: Sequence[JsonSchema], document: str, depth: int) -> dict[str, Any]:
        types = [branch for branch in branches if branch.get("type") != "null"]
        if len(types) != 1:
            raise DecodeError(NO_SCHEMA, "the registered JSON Schema has a union of several types")
        return {**self.connect_schema(types[0], document, depth - 1), "optional": len(branches) > 1}

    def _referenced(self, reference: str, document: str) -> tuple[JsonSchema, str]:
        """``name``, ``name#/definitions/Inner`` or ``#/definitions/Inner``."""
        name, _, pointer = reference.partition("#")
        found: Any = self._documents[name or document]
        for part in pointer.strip("/").split("/") if pointer.strip("/") else ():
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return found, name or document


def _type_name(kind: Any, schema: JsonSchema) -> str:
    """The type in Connect's JSON. Raises DecodeError."""
    if isinstance(kind, str) and TYPE in schema:
        return CONNECT_TYPES.get(kind, kind)
    if kind == "object":
        return "struct" if "properties" in schema else "map"
    if kind == "array":
        return "array"
    if isinstance(kind, str) and kind in PRIMITIVES:
        return PRIMITIVES[kind]
    raise DecodeError(NO_SCHEMA, "the registered JSON Schema has a type that Connect does not have")
