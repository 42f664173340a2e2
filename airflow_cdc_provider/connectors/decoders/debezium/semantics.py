"""Semantic types of Connect schemas, their logical types, and their short text, which is a column's ``native``:

    int64 io.debezium.time.MicroTimestamp
    bytes org.apache.kafka.connect.data.Decimal(scale=2,connect.decimal.precision=10)
    array<int32 io.debezium.time.Date>

Without a schema in the messages, only this text distinguishes milliseconds from microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.values import decimal_type
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

CONNECT = "org.apache.kafka.connect.data."
TIME, DATA = "io.debezium.time.", "io.debezium.data."
DECIMAL = f"{CONNECT}Decimal"
SCALE, PRECISION, LENGTH, UNSIGNED = "scale", "connect.decimal.precision", "length", "unsigned"
ALLOWED = "allowed"
"""The labels of an enum, percent-encoded in the short text since they may contain any character."""
KEPT = (SCALE, PRECISION, LENGTH, UNSIGNED, ALLOWED)
LABEL = re.compile(r"(?:[^,\\]|\\.)+")
SOURCE_TYPE = "__debezium.source.column.type"
"""A parameter that connectors add for columns in ``column.propagate.source.type``."""

NATIVE = re.compile(r"(?P<type>[a-z0-9]+)(?: (?P<name>[\w.]*))?(?:\((?P<parameters>[^()]*)\))?")
COLLECTION = re.compile(r"(?P<type>array|map)<(?P<inner>.+)>")
INNER = {"array": "items", "map": "values"}
"""Collection type → the member of its schema that has the schema of its items or values."""

PRIMITIVES: Mapping[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    "int8": Kind.INT16,
    "int16": Kind.INT16,
    "int32": Kind.INT32,
    "int64": Kind.INT64,
    "float": Kind.FLOAT32,
    "float32": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "float64": Kind.FLOAT64,
    "string": Kind.TEXT,
    "bytes": Kind.BYTES,
    "array": Kind.JSON,
    "map": Kind.JSON,
    "struct": Kind.JSON,
}
NAMED: Mapping[str, Kind] = {
    f"{TIME}Date": Kind.DATE,
    f"{CONNECT}Date": Kind.DATE,
    f"{TIME}IsoDate": Kind.DATE,
    f"{TIME}Time": Kind.TEXT,
    f"{TIME}MicroTime": Kind.TEXT,
    f"{TIME}NanoTime": Kind.TEXT,
    f"{TIME}IsoTime": Kind.TEXT,
    f"{TIME}ZonedTime": Kind.TEXT,
    f"{CONNECT}Time": Kind.TEXT,
    f"{TIME}Timestamp": Kind.TIMESTAMP,
    f"{TIME}MicroTimestamp": Kind.TIMESTAMP,
    f"{TIME}NanoTimestamp": Kind.TIMESTAMP,
    f"{TIME}IsoTimestamp": Kind.TIMESTAMP,
    f"{CONNECT}Timestamp": Kind.TIMESTAMP,
    f"{TIME}ZonedTimestamp": Kind.TIMESTAMPTZ,
    f"{TIME}Interval": Kind.TEXT,
    f"{DATA}VariableScaleDecimal": Kind.TEXT,
    f"{DATA}Bits": Kind.TEXT,
    f"{DATA}Json": Kind.JSON,
    f"{DATA}Uuid": Kind.UUID,
}


@dataclass(frozen=True)
class Semantic:
    """``inner``: the type of the items of an array, or of the values of a map."""

    type: str
    name: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    inner: Semantic | None = None

    def __str__(self) -> str:
        if self.inner is not None:
            return f"{self.type}<{self.inner}>"
        listed = ",".join(f"{name}={value}" for name, value in self.parameters)
        name = f" {self.name}" if self.name else ""
        return f"{self.type}{name}" + (f"({listed})" if listed else "")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(LABEL.findall(unquote(dict(self.parameters).get(ALLOWED, ""))))

    def number(self, name: str) -> int | None:
        value = dict(self.parameters).get(name)
        return int(value) if value is not None else None


def from_native(native: str) -> Semantic | None:
    """None if the text is a type of another system."""
    if collection := COLLECTION.fullmatch(native):
        inner = from_native(collection["inner"])
        return None if inner is None else Semantic(collection["type"], inner=inner)
    match = NATIVE.fullmatch(native)
    if match is None or match["type"] not in PRIMITIVES:
        return None
    parameters = [part.partition("=") for part in (match["parameters"] or "").split(",") if part]
    if not all(_is_parameter(name, value) for name, _, value in parameters):
        return None
    return Semantic(match["type"], match["name"] or "", tuple((name, value) for name, _, value in parameters))


def _is_parameter(name: str, value: str) -> bool:
    if name == ALLOWED:
        return quote(unquote(value), safe="") == value
    return name in KEPT and (value.lstrip("-").isdecimal() or value == "true")


def from_field(field: Mapping[str, Any]) -> Semantic:
    """A field of a Connect schema as JSON. Raises DecodeError."""
    kind, name = field.get("type"), field.get("name") or ""
    if not isinstance(kind, str) or kind not in PRIMITIVES or not isinstance(name, str):
        raise DecodeError(NO_SCHEMA, "the embedded schema has a type that Connect does not have")
    if kind in INNER and isinstance(field.get(INNER[kind]), dict):
        return Semantic(kind, inner=from_field(field[INNER[kind]]))
    given = field.get("parameters") or {}
    if not isinstance(given, dict):
        raise DecodeError(NO_SCHEMA, "the embedded schema has parameters that are not an object")
    parameters = [
        (known, quote(given[known], safe="") if known == ALLOWED else given[known])
        for known in KEPT
        if isinstance(given.get(known), str)
    ]
    if "UNSIGNED" in str(given.get(SOURCE_TYPE, "")).upper():
        parameters.append((UNSIGNED, "true"))
    semantic = Semantic(kind, name, tuple(parameters))
    if from_native(str(semantic)) != semantic:
        raise DecodeError(NO_SCHEMA, "the embedded schema has an invalid name or parameter")
    return semantic


def logical_type(semantic: Semantic) -> LogicalType:
    if semantic.name == DECIMAL:
        return decimal_type(semantic.number(PRECISION), semantic.number(SCALE))
    if is_unsigned_bigint(semantic):
        return decimal_type(20, 0)
    return LogicalType(NAMED.get(semantic.name, PRIMITIVES[semantic.type]))


def is_unsigned_bigint(semantic: Semantic) -> bool:
    return semantic.type == "int64" and not semantic.name and (UNSIGNED, "true") in semantic.parameters
