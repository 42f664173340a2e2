"""The envelope that all events share, read by name: the order of its fields differs between streams. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_ORDER,
    UNKNOWN_OPERATION,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.datastream.positions import (
    PLACES,
    DatastreamEvent,
    event_position,
    milliseconds,
    ordinal,
)
from airflow_cdc_provider.core.log.change_records import Operation

NAMES: Mapping[str, tuple[str, ...]] = {
    "mysql": ("database", "table"),
    "oracle": ("schema", "table"),
    "postgresql": ("schema", "table"),
    "sqlserver": ("database", "schema", "table"),
    "mongodb": ("database", "collection"),
}
GONE: Mapping[str, bool | None] = {
    "DELETE": True,
    "UPDATE-DELETE": True,
    "INSERT": False,
    "UPDATE-INSERT": False,
    "READ": False,
    "UPDATE": None,
}
"""Type of change -> whether the row is gone behind it; None where only ``is_deleted`` says so."""
HALVES = frozenset({"UPDATE-DELETE", "UPDATE-INSERT"})
BACKFILLED = "READ"
"""What MongoDB's backfilled documents are called, whichever way they were read."""


class Envelope(NamedTuple):
    """``payload`` is the whole row, of a delete too. ``key`` are the names of its columns, None where the event does
    not tell."""

    source: str
    table: str
    backfill: bool
    op: Operation
    half: bool
    key: tuple[str, ...] | None
    payload: Mapping[str, Any]
    metadata: Mapping[str, Any]
    uuid: str
    at_ms: int
    place: str
    ordinal: int


class Read(NamedTuple):
    """What is clear before anything else is: enough to say which table an event is of."""

    source: str
    backfill: bool
    table: str
    metadata: Mapping[str, Any]


def read_head(event: Mapping[str, Any]) -> Read:
    """Raises DecodeError."""
    metadata = as_row(event.get("source_metadata"), "source_metadata")
    method = event.get("read_method")
    if not isinstance(method, str):
        raise DecodeError(WRONG_VALUE, "read_method is no text")
    source = method.partition("-")[0].partition("_")[0]
    if source in ("cdc", "backfill"):
        source = "mongodb"
    if source not in PLACES:
        raise DecodeError(NO_ORDER, "read_method is of no source that we know")
    backfill = "backfill" in method or "dump" in method
    backfill |= source == "mongodb" and metadata.get("change_type") == BACKFILLED
    return Read(source, backfill, _table(source, event, metadata), metadata)


def read_envelope(event: Mapping[str, Any], head: Read) -> Envelope:
    """Raises DecodeError."""
    source, backfill, table, metadata = head
    uuid = event.get("uuid")
    if not isinstance(uuid, str) or not uuid:
        raise DecodeError(WRONG_VALUE, "an event without uuid")
    sort_keys = event.get("sort_keys")
    at_ms, read_ms = milliseconds(event.get("source_timestamp")), milliseconds(event.get("read_timestamp"))
    told = DatastreamEvent(metadata, sort_keys if isinstance(sort_keys, list) else (), at_ms, read_ms)
    change_type = metadata.get("change_type")
    return Envelope(
        source,
        table,
        backfill,
        _operation(change_type, metadata.get("is_deleted"), backfill),
        change_type in HALVES,
        _key(metadata),
        as_row(event.get("payload"), "the payload"),
        metadata,
        uuid,
        at_ms,
        event_position(source, backfill, told),
        ordinal(uuid),
    )


def _table(source: str, event: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """Not from ``object``, which joins names by what names may hold; Salesforce has nothing else."""
    if source == "salesforce":
        parts = [metadata.get("object_name") or metadata.get("object") or event.get("object")]
    else:
        parts = [metadata.get(name) for name in NAMES[source]]
        if source == "sqlserver" and parts[0] is None:
            del parts[0]
    if not all(isinstance(part, str) and part for part in parts):
        raise DecodeError(WRONG_VALUE, "the metadata do not name the table")
    return ".".join(map(str, parts))


def _operation(change_type: Any, is_deleted: Any, backfill: bool) -> Operation:
    """Each of the two may be missing; old dumps have no type of change. Where both tell, they must agree: of a row that
    is there and gone nobody knows which."""
    if change_type is not None and (not isinstance(change_type, str) or change_type not in GONE):
        raise DecodeError(UNKNOWN_OPERATION, "change_type is none that we know")
    if change_type == BACKFILLED and not backfill:
        raise DecodeError(UNKNOWN_OPERATION, "a change of type READ, which is MongoDB's alone")
    if is_deleted is not None and not isinstance(is_deleted, bool):
        raise DecodeError(WRONG_VALUE, "is_deleted is neither true nor false")
    gone = GONE[change_type] if change_type else None
    if None not in (gone, is_deleted) and gone != is_deleted:
        told = str(is_deleted).lower()
        raise DecodeError(CONTRADICTION, f"change_type is {change_type}, and is_deleted is {told}")
    if gone or is_deleted:
        return Operation.DELETE
    if backfill:
        return Operation.READ
    if change_type is None and is_deleted is None:
        raise DecodeError(UNKNOWN_OPERATION, "neither change_type nor is_deleted")
    return Operation.INSERT if change_type == "INSERT" else Operation.UPSERT


def _key(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    for name in ("primary_keys", "replication_index"):
        told = metadata.get(name)
        if isinstance(told, list) and told and all(isinstance(one, str) for one in told):
            return tuple(told)
    return None
