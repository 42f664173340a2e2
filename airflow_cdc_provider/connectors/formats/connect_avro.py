"""What Kafka Connect wrote as Avro, as the JSON that its own converter writes. Pure.

Connect's converter to Avro notes beside each type what Connect called it:

    {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.formats.jsonable import base64_of, number_or_text
from airflow_cdc_provider.connectors.formats.unreadable import NO_SCHEMA, Unreadable

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
FLOAT32 = struct.Struct("f")
DIGITS_OF_FLOAT32 = range(6, 10)

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Form:
    """``schema``: as it stands beside a payload. ``json``: from a value as the Avro file has it to one of JSON."""

    schema: dict[str, Any]
    json: Convert


def written_by_connect(avro: Any) -> bool:
    return isinstance(avro, dict) and NAME in avro


def form_of(avro: Mapping[str, Any]) -> Form:
    """Raises Unreadable for one that Connect does not write."""
    try:
        return _Forms().of(avro, "")
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise Unreadable(NO_SCHEMA, f"the file's schema is none of Avro ({type(error).__name__})") from error


class _Forms:
    """Named types may be used again by their names, in themselves too."""

    def __init__(self) -> None:
        self._named: dict[str, Mapping[str, Any]] = {}
        self._open: set[str] = set()

    def of(self, kind: Any, space: str) -> Form:
        """``space``: the namespace that names are meant in."""
        if isinstance(kind, list):
            branches = [one for one in kind if one != "null"]
            if len(branches) != 1:
                raise Unreadable(NO_SCHEMA, "a union of several types in the file's schema")
            form = self.of(branches[0], space)
            return Form({**form.schema, "optional": True}, _or_null(form.json))
        if isinstance(kind, str):
            return self._by_name(kind, space)
        if isinstance(kind, dict) and isinstance(kind.get("type"), str):
            return self._described(kind, kind["type"], space)
        if isinstance(kind, dict):  # the type itself in a shell of its own
            return self.of(kind.get("type"), space)
        raise Unreadable(NO_SCHEMA, "a type in the file's schema that is none")

    def _by_name(self, name: str, space: str) -> Form:
        if name in PRIMITIVES:
            return _primitive({"type": name}, name)
        full = name if "." in name or not space else f"{space}.{name}"
        known = self._named.get(full) or self._named.get(name)
        if known is None or full in self._open:
            raise Unreadable(NO_SCHEMA, "a type in the file's schema that is not described, or holds itself")
        return self._described(known, str(known["type"]), space)

    def _described(self, kind: Mapping[str, Any], type_: str, space: str) -> Form:
        if type_ in ("record", "enum", "fixed"):
            name = str(kind.get("name", ""))
            space = str(kind.get("namespace", space)) if "." not in name else name.rpartition(".")[0]
            full = f"{space}.{name}" if space and "." not in name else name
            self._named[full] = {**kind, "namespace": space}
            if type_ == "record":
                return self._record(kind, full, space)
        if type_ == "array":
            items = self.of(kind.get("items"), space)
            return Form({**_about(kind, "array"), "items": items.schema}, lambda value: [*map(items.json, value)])
        if type_ == "map":
            values = self.of(kind.get("values"), space)
            keys = {"type": "string", "optional": False}
            return Form(
                {**_about(kind, "map"), "keys": keys, "values": values.schema},
                lambda value: {name: values.json(one) for name, one in value.items()},
            )
        if type_ in PRIMITIVES:
            return _primitive(kind, type_)
        return self._by_name(type_, space)

    def _record(self, kind: Mapping[str, Any], full: str, space: str) -> Form:
        self._open.add(full)
        forms = {str(field["name"]): self.of(field["type"], space) for field in kind.get("fields", ())}
        self._open.discard(full)
        fields = [{**form.schema, "field": name} for name, form in forms.items()]
        return Form(
            {**_about(kind, "struct"), "fields": fields},
            lambda value: {name: form.json(value[name]) for name, form in forms.items()},
        )


def _about(kind: Mapping[str, Any], connect: str) -> dict[str, Any]:
    about: dict[str, Any] = {"type": connect, "optional": False}
    if isinstance(kind.get(NAME), str):
        about["name"] = kind[NAME]
    if isinstance(kind.get(PARAMETERS), dict):
        about["parameters"] = kind[PARAMETERS]
    return about


def _primitive(kind: Mapping[str, Any], avro: str) -> Form:
    connect = kind.get(TYPE)
    schema = _about(kind, connect if isinstance(connect, str) else PRIMITIVES[avro])
    match avro:
        case "bytes" | "fixed":
            return Form(schema, _binary)
        case "float":
            return Form(schema, _float32)
        case "double":
            return Form(schema, number_or_text)
        case _:
            return Form(schema, _as_it_is)


def _or_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _as_it_is(value: Any) -> Any:
    return value


def _binary(value: bytes | Decimal) -> str:
    """The digits of a decimal are bytes, too: big-endian two's complement."""
    if isinstance(value, bytes):
        return base64_of(value)
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    unscaled = -unscaled if sign else unscaled
    return base64_of(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))


def _float32(value: float) -> float | str:
    """The shortest number that is this one in 32 bits, as Java writes it."""
    if value != value or abs(value) == float("inf"):
        return number_or_text(value)
    packed = FLOAT32.pack(value)
    return next(short for digits in DIGITS_OF_FLOAT32 if FLOAT32.pack(short := float(f"{value:.{digits}g}")) == packed)
