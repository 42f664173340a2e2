"""The header of a change event."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError

MAX_SEQUENCE = 0xFFFFFFFF
MAX_COMMITTED_MS = 253_402_300_800_000


class ChangeType(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    UNDELETE = "UNDELETE"
    GAP_CREATE = "GAP_CREATE"
    GAP_UPDATE = "GAP_UPDATE"
    GAP_DELETE = "GAP_DELETE"
    GAP_UNDELETE = "GAP_UNDELETE"
    GAP_OVERFLOW = "GAP_OVERFLOW"


GAPS = frozenset({ChangeType.GAP_CREATE, ChangeType.GAP_UPDATE, ChangeType.GAP_DELETE, ChangeType.GAP_UNDELETE})
WITHOUT_BODY = GAPS | {ChangeType.GAP_OVERFLOW, ChangeType.DELETE}


class Header(NamedTuple):
    """``committed_ms`` is in milliseconds since 1970, with whole seconds; it may differ within a transaction. The three
    tuples are bitmaps."""

    entity: str
    ids: list[str]
    change: str
    transaction: str
    sequence: int
    committed_ms: int
    nulled: tuple[str, ...]
    diffs: tuple[str, ...]
    changed: tuple[str, ...]


def parse_header(values: dict[str, Any]) -> Header:
    """Raises DecodeError if a required field is missing or out of range."""
    try:
        header = Header(
            values["entityName"],
            values["recordIds"],
            values["changeType"],
            values["transactionKey"],
            values["sequenceNumber"],
            values["commitTimestamp"],
            tuple(values["nulledFields"]),
            tuple(values["diffFields"]),
            tuple(values["changedFields"]),
        )
    except KeyError as error:
        raise DecodeError(f"the header has no {error.args[0]}") from error
    if not header.transaction or not 0 <= header.sequence <= MAX_SEQUENCE:
        raise DecodeError("the header has no transaction key, or no valid sequence number")
    if not 0 <= header.committed_ms < MAX_COMMITTED_MS:
        raise DecodeError("the header has a commit timestamp out of range")
    return header
