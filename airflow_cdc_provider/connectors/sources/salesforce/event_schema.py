"""The Avro schema an event was written with. Schemas are told apart by their ids; each is read once. Pure."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.avro_names import resolved
from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.sparse import Body

HEADER = "ChangeEventHeader"


@dataclass(frozen=True)
class EventField:
    """``meaning`` is Salesforce's own type name (``DateOnly``, ``Currency``), empty where the schema says none.
    ``avro`` is the branch beside null; ``record`` where there is one, beside which a text may be allowed too.
    ``members`` are those of the record, in order."""

    name: str
    meaning: str
    avro: str
    members: tuple[EventField, ...] = ()


@dataclass(frozen=True)
class EventSchema:
    """``fields[0]`` is the header. ``text`` is the schema as it came."""

    schema_id: str
    entity: str
    fields: tuple[EventField, ...]
    text: str = field(repr=False)
    _head: Callable[[io.BytesIO], dict[str, Any]] = field(repr=False)
    _body: Body = field(repr=False)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields)

    def header(self, payload: bytes) -> tuple[dict[str, Any], int]:
        """The header, and where the body begins. Raises DecodeError where the bytes are not of this schema."""
        stream = io.BytesIO(payload)
        try:
            return self._head(stream)[HEADER], stream.tell()
        # Bytes of another schema make a reader stumble in any way there is.
        except Exception as error:
            raise DecodeError(f"the header does not fit its schema ({type(error).__name__})") from error

    def body(self, payload: bytes, at: int) -> dict[str, Any]:
        """The fields that are not null. Raises DecodeError."""
        try:
            values, end = self._body.read(payload, at)
        except (IndexError, ValueError, struct.error) as error:
            raise DecodeError(f"the fields do not fit their schema ({type(error).__name__})") from error
        if end != len(payload):
            raise DecodeError(f"{len(payload) - end} bytes are left behind the last field")
        return values


def parse_event_schema(schema_id: str, text: str) -> EventSchema:
    """Raises DecodeError where the text is not the schema of a change event."""
    from fastavro import parse_schema, schemaless_reader

    try:
        avro = json.loads(text)
        told = resolved(avro)["fields"]
        fields = tuple(map(_field, told))
        if not fields or fields[0].name != HEADER:
            raise DecodeError("the schema does not begin with a change event header")
        head: Any = parse_schema({**avro, "fields": avro["fields"][:1]})
        return EventSchema(
            schema_id,
            entity_of(avro["name"]),
            fields,
            text,
            lambda stream: schemaless_reader(stream, head, None),  # type: ignore[arg-type, return-value]
            Body(told[1:]),
        )
    except DecodeError:
        raise
    # What a server sends instead of a schema breaks a parser in any way there is.
    except Exception as error:
        raise DecodeError(f"schema {schema_id} cannot be understood ({type(error).__name__})") from error


def entity_of(record_name: str) -> str:
    """``AccountChangeEvent`` is of Account, ``Invoice__ChangeEvent`` of Invoice__c."""
    name = record_name.rpartition(".")[2]
    if name.endswith("__ChangeEvent"):
        return name.removesuffix("ChangeEvent") + "c"
    return name.removesuffix("ChangeEvent")


def change_event(entity: str) -> str:
    """The other way round."""
    return f"{entity.removesuffix('c')}ChangeEvent" if entity.endswith("__c") else f"{entity}ChangeEvent"


def _field(field: dict[str, Any]) -> EventField:
    branches = _branches(field["type"])
    record = next((b for b in branches if isinstance(b, dict) and b["type"] == "record"), None)
    members = tuple(map(_field, record["fields"])) if record else ()
    meaning = str(field.get("doc", "")).split(":")[1:2]
    avro = "record" if record else _name(branches[0])
    return EventField(field["name"], meaning[0] if meaning else "", avro, members)


def _branches(kind: Any) -> list[Any]:
    branches = kind if isinstance(kind, list) else [kind]
    return [branch for branch in branches if branch != "null"]


def _name(branch: Any) -> str:
    return str(branch["type"] if isinstance(branch, dict) else branch)
