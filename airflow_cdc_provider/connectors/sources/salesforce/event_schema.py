"""The Avro writer schema of an event. Pure."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.avro_names import resolve_names
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_body import EventBody

HEADER = "ChangeEventHeader"


@dataclass(frozen=True)
class EventField:
    """``data_type`` is Salesforce's type name (``DateOnly``, ``Currency``), empty if the schema has none. ``avro`` is
    the branch of the union beside null; ``record`` if there is one, which may be accompanied by a string branch.
    ``members`` are the fields of the record."""

    name: str
    data_type: str
    avro: str
    members: tuple[EventField, ...] = ()


@dataclass(frozen=True)
class EventSchema:
    """``fields[0]`` is the header. ``text`` is the schema as received."""

    schema_id: str
    entity: str
    fields: tuple[EventField, ...]
    text: str = field(repr=False)
    _read_header: Callable[[io.BytesIO], dict[str, Any]] = field(repr=False)
    _body: EventBody = field(repr=False)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields)

    def header(self, payload: bytes) -> tuple[dict[str, Any], int]:
        """The header, and the offset of the body. Raises DecodeError if the bytes do not match the schema."""
        stream = io.BytesIO(payload)
        try:
            return self._read_header(stream)[HEADER], stream.tell()
        # fastavro raises errors of any class on bytes of another schema.
        except Exception as error:
            raise DecodeError(f"the header does not match its schema ({type(error).__name__})") from error

    def body(self, payload: bytes, offset: int) -> dict[str, Any]:
        """The fields that are not null. Raises DecodeError."""
        try:
            values, end = self._body.read(payload, offset)
        except (IndexError, ValueError, struct.error) as error:
            raise DecodeError(f"the fields do not match their schema ({type(error).__name__})") from error
        if end != len(payload):
            raise DecodeError(f"{len(payload) - end} bytes are left after the last field")
        return values


def parse_event_schema(schema_id: str, text: str) -> EventSchema:
    """Raises DecodeError if the text is not the schema of a change event."""
    from fastavro import parse_schema, schemaless_reader

    try:
        avro = json.loads(text)
        avro_fields = resolve_names(avro)["fields"]
        fields = tuple(map(_field, avro_fields))
        if not fields or fields[0].name != HEADER:
            raise DecodeError("the schema does not begin with a change event header")
        header: Any = parse_schema({**avro, "fields": avro["fields"][:1]})
        return EventSchema(
            schema_id,
            entity_of(avro["name"]),
            fields,
            text,
            lambda stream: schemaless_reader(stream, header, None),  # type: ignore[arg-type, return-value]
            EventBody(avro_fields[1:]),
        )
    except DecodeError:
        raise
    # Parsers raise errors of any class on text that is no schema.
    except Exception as error:
        raise DecodeError(f"schema {schema_id} cannot be parsed ({type(error).__name__})") from error


def entity_of(record_name: str) -> str:
    """The object of an event: Account of ``AccountChangeEvent``, Invoice__c of ``Invoice__ChangeEvent``."""
    name = record_name.rpartition(".")[2]
    if name.endswith("__ChangeEvent"):
        return name.removesuffix("ChangeEvent") + "c"
    return name.removesuffix("ChangeEvent")


def event_name(entity: str) -> str:
    """The event of an object: the inverse of ``entity_of``."""
    return f"{entity.removesuffix('c')}ChangeEvent" if entity.endswith("__c") else f"{entity}ChangeEvent"


def _field(field: dict[str, Any]) -> EventField:
    branches = _branches(field["type"])
    record = next((b for b in branches if isinstance(b, dict) and b["type"] == "record"), None)
    members = tuple(map(_field, record["fields"])) if record else ()
    data_type = str(field.get("doc", "")).split(":")[1:2]
    avro = "record" if record else _type_name(branches[0])
    return EventField(field["name"], data_type[0] if data_type else "", avro, members)


def _branches(kind: Any) -> list[Any]:
    branches = kind if isinstance(kind, list) else [kind]
    return [branch for branch in branches if branch != "null"]


def _type_name(branch: Any) -> str:
    return str(branch["type"] if isinstance(branch, dict) else branch)
