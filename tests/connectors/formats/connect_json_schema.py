"""Connect schemas as JSON Schemas, as Confluent's JsonSchemaConverter writes them, from an independent reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
JSON_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    "boolean": "boolean",
    "string": "string",
    "bytes": "string",
    "struct": "object",
    "map": "object",
    "array": "array",
}
CONNECT_TYPES = {"float": "float32", "double": "float64"}
UNMARKED = frozenset({"boolean", "string", "struct", "array"})
"""Types that are unambiguous as JSON types."""


def json_schema_of(schema: Schema, index: int | None = None) -> dict[str, Any]:
    """``index``: the number of the field in its struct."""
    made = _type(schema)
    position = {} if index is None else {"connect.index": index}
    return {**position, "oneOf": [{"type": "null"}, made]} if schema.get("optional") else {**made, **position}


def _type(schema: Schema) -> dict[str, Any]:
    kind, name = schema["type"], schema.get("name")
    is_decimal = name == "org.apache.kafka.connect.data.Decimal"
    made: dict[str, Any] = {"type": "number" if is_decimal else JSON_TYPES[kind]}
    if kind not in UNMARKED:
        made["connect.type"] = CONNECT_TYPES.get(kind, kind)
    if name:
        made["title"] = name
    if "version" in schema:
        made["connect.version"] = schema["version"]
    if schema.get("parameters"):
        made["connect.parameters"] = schema["parameters"]
    if "default" in schema and kind not in ("struct", "bytes"):
        made["default"] = schema["default"]
    match kind:
        case "struct":
            made["properties"] = {
                field["field"]: json_schema_of(field, number)
                for number, field in reversed(list(enumerate(schema["fields"])))
            }
        case "array":
            made["items"] = json_schema_of(schema["items"])
        case "map":
            made["additionalProperties"] = json_schema_of(schema["values"])
    return made
