"""Avro written by Kafka Connect, as the JSON that Connect's JsonConverter writes. Pure.

Connect's AvroConverter keeps the Connect type in properties of the Avro type:

    {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}

Without these properties (``connect.meta.data=false``, other writers), the logical types of Avro are used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.avro_names import resolve_names
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of, number_or_text

NAME, TYPE, PARAMETERS = "connect.name", "connect.type", "connect.parameters"
PRIMITIVES: Mapping[str, str] = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "fixed": "bytes",
    "string": "string",
    "enum": "string",
}
CONNECT, DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
LOGICAL_TYPES: Mapping[str, str] = {
    "decimal": f"{CONNECT}Decimal",
    "date": f"{CONNECT}Date",
    "time-millis": f"{CONNECT}Time",
    "time-micros": f"{DEBEZIUM}MicroTime",
    "timestamp-millis": f"{CONNECT}Timestamp",
    "timestamp-micros": f"{DEBEZIUM}MicroTimestamp",
}
FLOAT32 = struct.Struct("f")
DIGITS_OF_FLOAT32 = range(6, 10)

ToJson = Callable[[Any], Any]


@dataclass(frozen=True)
class AvroForm:
    """``schema``: the Connect schema. ``to_json``: converts a value of the Avro file to a JSON value."""

    schema: dict[str, Any]
    to_json: ToJson


def is_written_by_connect(avro: Any) -> bool:
    return isinstance(avro, dict) and NAME in avro


def form_of(avro: Mapping[str, Any]) -> AvroForm:
    """Raises DecodeError for a schema that Connect does not write."""
    try:
        return _form(resolve_names(avro))
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise DecodeError(NO_SCHEMA, f"not an Avro schema ({type(error).__name__})") from error


def _form(kind: Any) -> AvroForm:
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        if len(branches) != 1:
            raise DecodeError(NO_SCHEMA, "the Avro schema has a union of several types")
        form = _form(branches[0])
        return AvroForm({**form.schema, "optional": True}, _or_null(form.to_json))
    if isinstance(kind, str):
        return _form({"type": kind})
    match kind["type"]:
        case "record":
            return _record(kind)
        case "array":
            items = _form(kind["items"])
            return AvroForm(
                {**_schema(kind, "array"), "items": items.schema}, lambda value: [*map(items.to_json, value)]
            )
        case "map":
            values = _form(kind["values"])
            keys = {"type": "string", "optional": False}
            return AvroForm(
                {**_schema(kind, "map"), "keys": keys, "values": values.schema},
                lambda value: {name: values.to_json(member) for name, member in value.items()},
            )
        case str(plain) if plain in PRIMITIVES:
            return _primitive(kind, plain)
    raise DecodeError(NO_SCHEMA, "the Avro schema has a type that Connect does not have, or a recursive type")


def _record(kind: Mapping[str, Any]) -> AvroForm:
    forms = {str(field["name"]): _form(field["type"]) for field in kind["fields"]}
    fields = [{**form.schema, "field": name} for name, form in forms.items()]
    return AvroForm(
        {**_schema(kind, "struct"), "fields": fields},
        lambda value: {name: form.to_json(value[name]) for name, form in forms.items()},
    )


def _schema(kind: Mapping[str, Any], connect: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": connect, "optional": False}
    if isinstance(kind.get(NAME), str):
        schema["name"] = kind[NAME]
    elif logical := LOGICAL_TYPES.get(str(kind.get("logicalType"))):
        schema["name"] = logical
    if isinstance(kind.get(PARAMETERS), dict):
        schema["parameters"] = kind[PARAMETERS]
    elif schema.get("name") == LOGICAL_TYPES["decimal"]:
        schema["parameters"] = {"scale": str(kind.get("scale", 0)), "connect.decimal.precision": str(kind["precision"])}
    return schema


def _primitive(kind: Mapping[str, Any], avro: str) -> AvroForm:
    connect = kind.get(TYPE)
    schema = _schema(kind, connect if isinstance(connect, str) else PRIMITIVES[avro])
    match avro:
        case "bytes" | "fixed":
            return AvroForm(schema, _binary)
        case "float":
            return AvroForm(schema, shortest_float32)
        case "double":
            return AvroForm(schema, number_or_text)
        case _:
            return AvroForm(schema, _unchanged)


def _or_null(convert: ToJson) -> ToJson:
    return lambda value: None if value is None else convert(value)


def _unchanged(value: Any) -> Any:
    return value


def _binary(value: bytes | Decimal) -> str:
    """A decimal is written as its unscaled value in big-endian two's complement."""
    if isinstance(value, bytes):
        return base64_of(value)
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    unscaled = -unscaled if sign else unscaled
    return base64_of(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))


def shortest_float32(value: float) -> float | str:
    """The shortest number that equals ``value`` in 32 bits, as Java writes it."""
    if value != value or abs(value) == float("inf"):
        return number_or_text(value)
    packed = FLOAT32.pack(value)
    return next(short for digits in DIGITS_OF_FLOAT32 if FLOAT32.pack(short := float(f"{value:.{digits}g}")) == packed)
