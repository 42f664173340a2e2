"""An event as delivered to a subscriber: without fields hidden from the user, and with the settings of the member.

A filter of the member excludes events of records that do not match; enriched fields are added to updates and deletes,
with their current values. With either, each record has a separate event.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro

from airflow_cdc_provider.sandbox.salesforce.bus import Entry
from airflow_cdc_provider.sandbox.salesforce.channels import Member
from airflow_cdc_provider.sandbox.salesforce.event_schema import EventSchema
from airflow_cdc_provider.sandbox.salesforce.schemas import Schemas
from airflow_cdc_provider.sandbox.salesforce.soql.parse import parse
from airflow_cdc_provider.sandbox.salesforce.soql.run import fields_of, test_of
from airflow_cdc_provider.sandbox.salesforce.storage import Store
from airflow_cdc_provider.sandbox.salesforce.users import User
from airflow_cdc_provider.sandbox.salesforce.wire import produced

ENRICHED_KINDS = ("UPDATE", "DELETE")


class Delivery:
    def __init__(self, schemas: Schemas, store: Store) -> None:
        self._schemas, self._store = schemas, store

    def of(self, entry: Entry, member: Member | None, user: User, now: str) -> list[bytes]:
        """The encoded events, which have the same replay id. ``now`` is the current second."""
        hidden = {field for entity, field in user.hidden if entity == entry.entity}
        customized = member is not None and (member.filter_expression or member.enriched)
        if entry.event is None or not (hidden or customized):
            return [entry.produced]
        schema = self._schemas.by_id(entry.event.schema_id)
        assert schema is not None, "every event has a schema that was published"
        body = decoded(entry.event.payload, schema)
        header = body.pop("ChangeEventHeader")
        if member is None or not customized or header["changeType"].startswith("GAP_"):
            return [produced("", schema.id, schema.encode(header, masked(body, hidden, schema)))]
        bodies = {
            record: self._record_body(body, header["changeType"], record, member, schema, now)
            for record in header["recordIds"]
        }
        return [
            produced("", schema.id, schema.encode({**header, "recordIds": [record]}, masked(own, hidden, schema)))
            for record, own in bodies.items()
            if own is not None
        ]

    def _record_body(
        self, body: Mapping[str, Any], kind: str, record: str, member: Member, schema: EventSchema, now: str
    ) -> dict[str, Any] | None:
        """None if the filter excludes the record."""
        table = self._store.table(member.entity)
        row = table.rows.get(record)
        added = set(member.enriched)
        if member.filter_expression:
            condition = parse(f"SELECT Id FROM {member.entity} WHERE {member.filter_expression}").where
            assert condition is not None
            added |= fields_of(condition)
            if row is not None and not test_of(condition, table.type, now)(row):
                return None
        if row is None or kind not in ENRICHED_KINDS:
            return dict(body)
        names = {field.name for field in schema.type.event_fields if field.formula is None}
        return {**body, **{name: schema.value(table.type.by_name[name], row) for name in sorted(added & names)}}


def decoded(payload: bytes, schema: EventSchema) -> dict[str, Any]:
    event = fastavro.schemaless_reader(io.BytesIO(payload), schema.parsed, None)
    if not isinstance(event, dict):
        raise TypeError(f"an event is a record, not {type(event)}")
    return event


def masked(body: Mapping[str, Any], hidden: set[str], schema: EventSchema) -> dict[str, Any]:
    """Field-level security: hidden values become null, the schema does not change."""
    visible = {name: None if name in hidden else value for name, value in body.items()}
    for field in schema.type.event_fields:
        members = visible.get(field.name)
        if isinstance(members, dict):
            parts = dict(field.members)
            visible[field.name] = {name: None if parts.get(name) in hidden else one for name, one in members.items()}
    return visible
