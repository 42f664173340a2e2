"""Events that nobody can read: kept whole in the change log, and read once more where somebody asks for it. Pure."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace

from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema, parse_event_schema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent
from airflow_cdc_provider.connectors.sources.salesforce.header import WITHOUT_BODY, ChangeType, header_of
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, stands_for_many
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
"""A created record is an insert here: without it there is no row for what comes behind it."""


def kept(event: ChannelEvent, schema: EventSchema | None, reason: str, change: str = "") -> str:
    """What ``after`` of an unreadable record says. Without its schema nobody can read an event, so it is kept, too."""
    op = OPERATIONS.get(change) or ""  # type: ignore[call-overload]
    context = _base64(schema.text.encode()) if schema else ""
    return canonical(to_plain(quarantine.UndecodedRecord(CODEC, _base64(event.payload), reason, context, str(op))))


def without_header(
    event: ChannelEvent, schema: EventSchema | None, reason: str, table: TableSchema, order_key: str
) -> ChangeRecord:
    """An event that may be of this table, and of whatever record."""
    replay_id = _base64(event.replay_id)
    return ChangeRecord(
        table.table,
        Operation.UNREADABLE,
        order_key,
        table.schema_id,
        after=kept(event, schema, reason),
        position=position_json(event.replay_id),
        event_id=f"{replay_id}:{table.table}",
    )


def reread(record: ChangeRecord, schema: TableSchema, describe: Callable[[str], ObjectSchema]) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``. The records of the same id only, where that was known."""
    what = quarantine.undecoded(record)
    if what is None or what.codec != CODEC or not what.context:
        return [record]
    payload = b64decode(what.raw)
    try:
        event = parse_event_schema("kept", b64decode(what.context).decode())
        values, at = event.header(payload)
        header = header_of(values)
        if header.entity != record.table or any(map(stands_for_many, header.ids)):
            return [record]
        if record.key is not None:
            header = header._replace(ids=[one for one in header.ids if f'["{full_id(one)}"]' == record.key])
        body = {} if header.change in WITHOUT_BODY else event.body(payload, at)
        layout = EventLayout(event, describe(record.table), schema)
        made = EventRecords(header, schema, lambda _: record.order_key, b"").changes(layout, body)
    except (DecodeError, ValueError):
        return [record]
    if any(one.op in CONTROL_OPERATIONS for one in made):
        return [record]
    return [replace(one, position=record.position, schema_id=record.schema_id) for one in made]


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")
