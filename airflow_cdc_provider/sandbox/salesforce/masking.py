"""Field-level security on events: hidden values are taken out before delivery, the schema stays whole."""

from __future__ import annotations

import io

import fastavro

from airflow_cdc_provider.sandbox.salesforce.bus import Entry
from airflow_cdc_provider.sandbox.salesforce.schemas import Schemas
from airflow_cdc_provider.sandbox.salesforce.users import User
from airflow_cdc_provider.sandbox.salesforce.wire import produced


def masked(entry: Entry, user: User, schemas: Schemas) -> bytes:
    """The event as this user may see it, as bytes on the wire."""
    hidden = {field for entity, field in user.hidden if entity == entry.entity}
    schema = schemas.by_id(entry.event.schema_id) if hidden and entry.event else None
    if schema is None or entry.event is None:
        return entry.produced
    decoded = fastavro.schemaless_reader(io.BytesIO(entry.event.payload), schema.parsed, None)
    if not isinstance(decoded, dict):
        raise TypeError(f"an event is a record, not {type(decoded)}")
    for field in schema.type.event_fields:
        if field.name in hidden:
            decoded[field.name] = None
        elif isinstance(decoded[field.name], dict):
            for member, part in field.members:
                if part in hidden:
                    decoded[field.name][member] = None
    payload = schema.encode(decoded.pop("ChangeEventHeader"), decoded)
    return produced("", schema.id, payload)
