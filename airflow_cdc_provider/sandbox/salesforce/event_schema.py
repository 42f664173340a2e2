"""The Avro schema of an object's change events at one version of its definition, and the encoding of rows with it.

A named type is defined at its first use and named afterwards. The ``doc`` of a field contains its Salesforce type.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from functools import cached_property
from typing import Any

import fastavro

from airflow_cdc_provider.sandbox.salesforce import avro
from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row

NAMESPACE = "com.sforce.eventbus"
EPOCH = date(1970, 1, 1).toordinal()
CHANGE_TYPES = ("CREATE", "UPDATE", "DELETE", "UNDELETE")
SYMBOLS = (*CHANGE_TYPES, *(f"GAP_{kind}" for kind in CHANGE_TYPES), "GAP_OVERFLOW", "SNAPSHOT")
HEADER = {
    "type": "record",
    "name": "ChangeEventHeader",
    "fields": [
        {"name": "entityName", "type": "string"},
        {"name": "recordIds", "type": {"type": "array", "items": "string"}},
        {
            "name": "changeType",
            "type": {
                "type": "enum",
                "name": "ChangeType",
                "symbols": list(SYMBOLS),
            },
        },
        {"name": "changeOrigin", "type": "string"},
        {"name": "transactionKey", "type": "string"},
        {"name": "sequenceNumber", "type": "int"},
        {"name": "commitTimestamp", "type": "long"},
        {"name": "commitNumber", "type": "long"},
        {"name": "commitUser", "type": "string"},
        *({"name": name, "type": {"type": "array", "items": "string"}} for name in ("nulledFields", "diffFields")),
        {"name": "changedFields", "type": {"type": "array", "items": "string"}},
    ],
}
PARSED_HEADER = fastavro.parse_schema(HEADER)
# The names of compound records.
RECORDS = ("Address", "Location", "PersonName", "Switchable_PersonName")
AVRO_TYPES = {
    "Boolean": "boolean",
    "Integer": "int",
    "Double": "double",
    "Currency": "double",
    "Percent": "double",
    "DateTime": "long",
    "DateOnly": "long",
    "TimeOnly": "long",
}


def _day(text: str) -> int:
    return (date.fromisoformat(text).toordinal() - EPOCH) * 86_400_000


def _time(text: str) -> int:
    moment = time.fromisoformat(text)
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1000 + moment.microsecond // 1000


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {"datetime": milliseconds, "date": _day, "time": _time}


def _header(header: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED_HEADER, header)
    return out.getvalue()


@dataclass(frozen=True)
class EventSchema:
    """``positions``: slot of a row → (position of the event field, position of the member in it, or None)."""

    type: ObjectType

    @cached_property
    def json(self) -> str:
        known: set[str] = set()
        fields: list[dict[str, Any]] = [
            {"name": "ChangeEventHeader", "type": HEADER, "doc": "Data:ComplexValueType"},
            *(self._field(field, known) for field in self.type.event_fields),
        ]
        schema = {"type": "record", "name": self.type.event_name, "namespace": NAMESPACE, "fields": fields}
        return json.dumps(schema, separators=(",", ":"))

    @cached_property
    def id(self) -> str:
        """A hash: the same definition has the same id."""
        return (
            base64.urlsafe_b64encode(hashlib.md5(self.json.encode(), usedforsecurity=False).digest())
            .decode()
            .rstrip("=")
        )

    @cached_property
    def parsed(self) -> Any:
        return fastavro.parse_schema(json.loads(self.json))

    @cached_property
    def positions(self) -> Mapping[int, tuple[int, int | None]]:
        positions: dict[int, tuple[int, int | None]] = {}
        for position, field in enumerate(self.type.event_fields, 1):
            for index, (_, part) in enumerate(field.members):
                positions[self.type.slots[part]] = (position, index)
            if field.stored and field.event_type != "PersonName":
                positions[self.type.slots[field.name]] = (position, None)
        return positions

    def field(self, position: int) -> Field:
        return self.type.event_fields[position - 1]

    def body(self, row: Row, now: str) -> dict[str, Any]:
        """All values of a record that are not null, with formulas."""
        body = {}
        values = self.type.values(row, now) if self._has_formulas else {}
        for field in self.type.event_fields:
            value = values[field.name] if field.formula else self.value(field, row)
            if value is not None:
                body[field.name] = value
        return body

    def value(self, field: Field, row: Row) -> Any:
        """The value of a field. A compound field is a record of its members, also the name of a person account."""
        if field.members:
            members = {member: self.member(part, row) for member, part in field.members}
            if field.event_type != "Switchable_PersonName" or members["LastName"] is not None:
                return None if set(members.values()) == {None} else members
        return self._converted(field, row[self.type.slots[field.name]])

    def member(self, part: str, row: Row) -> Any:
        return row[self.type.slots[part]]

    def encode(self, header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        """Avro without a container. Fields that ``body`` lacks are null."""
        out = bytearray(_header(header))
        done = 0
        for index, name in sorted((self._indexes[name], name) for name in body):
            out += avro.NULL * (index - done) + self._union(index, body[name])
            done = index + 1
        return bytes(out + avro.NULL * (len(self.type.event_fields) - done))

    def _union(self, index: int, value: Any) -> bytes:
        """Null or the field's type; for the name of an account, text comes before the record."""
        field = self.type.event_fields[index]
        if isinstance(value, dict) and field.event_type == "Switchable_PersonName":
            return avro.SECOND_BRANCH + self._writers[index](value)
        if field.event_type == "Switchable_PersonName":
            return avro.nullable(value, avro.text)
        return avro.nullable(value, self._writers[index])

    @cached_property
    def _indexes(self) -> Mapping[str, int]:
        return {field.name: index for index, field in enumerate(self.type.event_fields)}

    @cached_property
    def _writers(self) -> Sequence[avro.Write]:
        return [self._writer(field) for field in self.type.event_fields]

    def _writer(self, field: Field) -> avro.Write:
        if field.event_type not in RECORDS:
            return avro.WRITERS[AVRO_TYPES.get(field.event_type or "", "string")]
        return avro.record([(member, avro.WRITERS[self._member_type(part)]) for member, part in field.members])

    def _member_type(self, part: str) -> str:
        return "double" if self.type.by_name[part].kind == "double" else "string"

    @cached_property
    def _has_formulas(self) -> bool:
        return any(field.formula for field in self.type.event_fields)

    @staticmethod
    def _converted(field: Field, value: Any) -> Any:
        convert = CONVERSIONS.get(field.kind)
        return convert(value) if convert and value is not None else value

    def _field(self, field: Field, known: set[str]) -> dict[str, Any]:
        event_type = field.event_type or ""
        types: list[Any] = ["null"]
        if event_type not in RECORDS or event_type == "Switchable_PersonName":
            types.append(AVRO_TYPES.get(event_type, "string"))
        if event_type in RECORDS:
            types.append(event_type if event_type in known else self._record(event_type, field))
            known.add(event_type)
        doc = f"{field.event_role}:{event_type}"
        if field.custom:
            number = hashlib.md5(f"{self.type.name}.{field.name}".encode(), usedforsecurity=False).hexdigest()[:9]
            doc += f":00N5g{number}0"
        return {"name": field.name, "type": types, "doc": doc, "default": None}

    def _record(self, name: str, field: Field) -> dict[str, Any]:
        members = []
        for member, part in field.members:
            members.append({"name": member, "type": ["null", self._member_type(part)], "default": None})
        return {"type": "record", "name": name, "fields": members}
