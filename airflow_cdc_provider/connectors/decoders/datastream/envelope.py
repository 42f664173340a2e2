"""The envelope of all events, read by field name, since the order of its fields differs between streams. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    UNKNOWN_OPERATION,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import not_supported, refusal
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.datastream.positions import (
    POSITIONS,
    DatastreamEvent,
    event_position,
    milliseconds,
    ordinal,
)
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.source_names import table_name

NAMES: Mapping[str, tuple[str, ...]] = {
    "mysql": ("database", "table"),
    "oracle": ("schema", "table"),
    "postgresql": ("schema", "table"),
    "sqlserver": ("database", "schema", "table"),
    "mongodb": ("database", "collection"),
}
DELETES: Mapping[str, bool | None] = {
    "DELETE": True,
    "UPDATE-DELETE": True,
    "INSERT": False,
    "UPDATE-INSERT": False,
    "READ": False,
    "UPDATE": None,
}
"""change_type → whether the row is deleted; None if only ``is_deleted`` decides it."""
HEAD = frozenset({"read_method", "source_metadata"})
KEY_CHANGES = frozenset({"UPDATE-DELETE", "UPDATE-INSERT"})
OTHER_NAMES: Mapping[str, str] = {"postgres": "postgresql", "cdc": "mongodb", "backfill": "mongodb"}
"""Other names of sources in a read_method: ``postgres-cdc-wal``, ``cdc``."""
BACKFILLED = "READ"
"""The change_type of documents that a backfill of MongoDB read, for any read_method."""


class Envelope(NamedTuple):
    """``payload``: the whole row, also for a delete; of MongoDB's deletes only the ``_id``. Empty if a delete has none.
    ``key``: the names of the key columns; None if unknown.
    ``is_key_change``: the event is one half of a key change. ``position``: class and position in the order key."""

    source: str
    table: str
    backfill: bool
    op: Operation
    is_key_change: bool
    key: tuple[str, ...] | None
    payload: Mapping[str, Any]
    metadata: Mapping[str, Any]
    uuid: str
    at_ms: int
    position: str
    ordinal: int


class EventHead(NamedTuple):
    """The part of the envelope that identifies the table."""

    source: str
    backfill: bool
    table: str
    metadata: Mapping[str, Any]


def read_head(event: Mapping[str, Any]) -> EventHead:
    """Raises DecodeError."""
    if HEAD.isdisjoint(event):
        raise refusal(event, "datastream", "neither read_method nor source_metadata")
    metadata = as_row(event.get("source_metadata"), "source_metadata")
    method = event.get("read_method")
    if not isinstance(method, str):
        raise DecodeError(WRONG_VALUE, "read_method is not a string")
    source = method.partition("-")[0].partition("_")[0]
    source = OTHER_NAMES.get(source, source)
    if source not in POSITIONS:
        raise not_supported("read_method", method, POSITIONS)
    backfill = "backfill" in method or "dump" in method
    backfill |= source == "mongodb" and metadata.get("change_type") == BACKFILLED
    return EventHead(source, backfill, _table(source, event, metadata), metadata)


def read_envelope(event: Mapping[str, Any], head: EventHead) -> Envelope:
    """Raises DecodeError."""
    source, backfill, table, metadata = head
    uuid = event.get("uuid")
    if not isinstance(uuid, str) or not uuid:
        raise DecodeError(WRONG_VALUE, "an event without uuid")
    sort_keys = event.get("sort_keys")
    at_ms, read_ms = milliseconds(event.get("source_timestamp")), milliseconds(event.get("read_timestamp"))
    datastream_event = DatastreamEvent(metadata, sort_keys if isinstance(sort_keys, list) else (), at_ms, read_ms)
    change_type = metadata.get("change_type")
    op = _operation(change_type, metadata.get("is_deleted"), backfill)
    payload = event.get("payload")
    return Envelope(
        source,
        table,
        backfill,
        op,
        change_type in KEY_CHANGES,
        _key(metadata),
        {} if payload is None and op is Operation.DELETE else as_row(payload, "the payload"),
        metadata,
        uuid,
        at_ms,
        event_position(source, backfill, datastream_event),
        ordinal(uuid),
    )


def _table(source: str, event: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """Not from ``object``, which joins names with a character that names may contain; Salesforce has nothing else."""
    if source == "salesforce":
        parts = [metadata.get("object_name") or metadata.get("object") or event.get("object")]
    else:
        parts = [metadata.get(name) for name in NAMES[source]]
        if source == "sqlserver" and parts[0] is None:
            del parts[0]
    if not all(isinstance(part, str) and part for part in parts):
        raise DecodeError(WRONG_VALUE, "source_metadata does not name the table")
    return table_name(*map(str, parts))


def _operation(change_type: Any, is_deleted: Any, backfill: bool) -> Operation:
    """Each of ``change_type`` and ``is_deleted`` may be missing; old dumps have no change_type. If both are present,
    they must agree."""
    if change_type is not None and (not isinstance(change_type, str) or change_type not in DELETES):
        raise DecodeError(UNKNOWN_OPERATION, "change_type is not a known operation")
    if change_type == BACKFILLED and not backfill:
        raise DecodeError(UNKNOWN_OPERATION, "change_type is READ, which only MongoDB has")
    if is_deleted is not None and not isinstance(is_deleted, bool):
        raise DecodeError(WRONG_VALUE, "is_deleted is neither true nor false")
    deletes = DELETES[change_type] if change_type else None
    if None not in (deletes, is_deleted) and deletes != is_deleted:
        flag = str(is_deleted).lower()
        raise DecodeError(CONTRADICTION, f"change_type is {change_type}, and is_deleted is {flag}")
    if deletes or is_deleted:
        return Operation.DELETE
    if backfill:
        return Operation.READ
    if change_type is None and is_deleted is None:
        raise DecodeError(UNKNOWN_OPERATION, "neither change_type nor is_deleted")
    return Operation.INSERT if change_type == "INSERT" else Operation.UPSERT


def _key(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    for name in ("primary_keys", "replication_index"):
        columns = metadata.get(name)
        if isinstance(columns, list) and columns and all(isinstance(column, str) for column in columns):
            return tuple(columns)
    return None
