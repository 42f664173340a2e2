"""Events that cannot be decoded: stored in the change log with their bytes and schema, and decoded again on request.
Pure."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema, parse_event_schema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent
from airflow_cdc_provider.connectors.sources.salesforce.header import WITHOUT_BODY, ChangeType, parse_header
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, is_wildcard
from airflow_cdc_provider.connectors.sources.salesforce.records import EventRecords, position_json
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.log import quarantine
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

CODEC = "salesforce change event 1"
OPERATIONS = {
    ChangeType.CREATE: Operation.INSERT,
    ChangeType.UNDELETE: Operation.INSERT,
    ChangeType.UPDATE: Operation.UPDATE,
    ChangeType.DELETE: Operation.DELETE,
}
"""CREATE is an insert here: without it there is no row for the changes that follow."""


def undecoded_event(event: ChannelEvent, schema: EventSchema | None, reason: str, change: str = "") -> str:
    """``after`` of an unreadable record. It includes the schema, which is required to decode the event later."""
    op = OPERATIONS.get(change) or ""  # type: ignore[call-overload]
    context = base64_of(schema.text.encode()) if schema else ""
    return canonical(to_plain(quarantine.UndecodedRecord(CODEC, base64_of(event.payload), reason, context, str(op))))


def record_without_header(
    event: ChannelEvent, schema: EventSchema | None, reason: str, table: TableSchema, order_key: str
) -> ChangeRecord:
    """An event that may belong to any record of this table."""
    replay_id = base64_of(event.replay_id)
    return ChangeRecord(
        table.table,
        Operation.UNREADABLE,
        order_key,
        table.schema_id,
        after=undecoded_event(event, schema, reason),
        position=position_json(event.replay_id),
        event_id=f"{replay_id}:{table.table}",
    )


def reread(record: ChangeRecord, schema: TableSchema, describe: Callable[[str], ObjectSchema]) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``. Returns only the records of the same id if ``record`` has one. A number with more
    digits than its column has is rounded only if its field still has this type."""
    undecoded = quarantine.undecoded(record)
    if undecoded is None or undecoded.codec != CODEC or not undecoded.context:
        return [record]
    payload = b64decode(undecoded.raw)
    try:
        event = parse_event_schema("kept", b64decode(undecoded.context).decode())
        values, body_offset = event.header(payload)
        header = parse_header(values)
        if header.entity != record.table or any(map(is_wildcard, header.ids)):
            return [record]
        if record.key is not None:
            header = header._replace(ids=[text for text in header.ids if f'["{full_id(text)}"]' == record.key])
        body = {} if header.change in WITHOUT_BODY else event.body(payload, body_offset)
        described = describe(record.table)
        layout = EventLayout(event, described, schema, _of_same_type(schema, described.schema))
        changes = EventRecords(header, schema, lambda _: record.order_key, b"").changes(layout, body)
    except (DecodeError, ValueError):
        return [record]
    if any(change.op in CONTROL_OPERATIONS for change in changes):
        return [record]
    return [replace(change, position=record.position, schema_id=record.schema_id) for change in changes]


def _of_same_type(schema: TableSchema, now: TableSchema) -> frozenset[str]:
    types = {column.name: column.type for column in now.columns}
    return frozenset(column.name for column in schema.columns if types.get(column.name) == column.type)
