"""The change record: one change of one row, or one control event. Its fields are the columns of the change log."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any


class Operation(StrEnum):
    """``update`` requires an existing row, ``upsert`` does not. ``replace`` sets every column without a value to NULL.
    ``read`` is a row of a copy. ``unreadable`` is a change that could not be decoded; its ``after`` is a
    ``core.log.quarantine.UndecodedRecord``. ``truncate`` and the following are control events, without a row."""

    INSERT = "insert"
    UPDATE = "update"
    UPSERT = "upsert"
    REPLACE = "replace"
    DELETE = "delete"
    READ = "read"
    UNREADABLE = "unreadable"
    TRUNCATE = "truncate"
    SCHEMA = "schema"
    GAP = "gap"
    OVERFLOW = "overflow"
    BARRIER = "barrier"
    MESSAGE = "message"


CONTROL_OPERATIONS = frozenset(
    {
        Operation.TRUNCATE,
        Operation.SCHEMA,
        Operation.GAP,
        Operation.OVERFLOW,
        Operation.BARRIER,
        Operation.MESSAGE,
    }
)

DEPARTS, ARRIVES = 0, 1


# Immutable by convention, but not frozen: one record is created per row, and freezing makes that nine times as slow.
@dataclass(slots=True, unsafe_hash=True)
class ChangeRecord:
    """The order of the fields is the order of the columns.

    ``key`` and ``key_before`` are canonical JSON arrays; ``before`` and ``after`` canonical JSON objects of the *known*
    values: a column with null is NULL, an absent column is unknown or unchanged. ``order_key`` totally orders the
    records of a key; records of different keys may share an order key. ``position`` is the source's own position as
    JSON, for diagnostics.
    """

    table: str
    op: str
    order_key: str
    schema_id: str
    key_before: str | None = None
    key: str | None = None
    before: str | None = None
    after: str | None = None
    before_complete: bool = False
    after_complete: bool = False
    refetch: tuple[str, ...] = ()
    phase: int | None = None
    link_id: str | None = None
    row_id: str | None = None
    tx_id: str | None = None
    tx_seq: int | None = None
    commit_ts: datetime | None = None
    position: str = "{}"
    event_id: str = ""
    snapshot: str = "none"
    warnings: tuple[str, ...] = ()


IMAGE_OPERATIONS = frozenset({Operation.INSERT, Operation.UPDATE, Operation.UPSERT, Operation.REPLACE, Operation.READ})
"""Operations whose ``after`` is the image of a row."""

FIELDS: tuple[str, ...] = tuple(field.name for field in fields(ChangeRecord))


def canonical(value: Any) -> str:
    """Canonical JSON text: no spaces, member order kept. Non-finite floats must already be text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
