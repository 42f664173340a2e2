"""The change record: one change of one row, or one control event. Its fields are the columns of the change log."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any


class Operation(StrEnum):
    """``update`` means that the row must exist; ``upsert`` need not. ``replace`` sets every column it does not name to
    NULL. ``read`` is a row met by a copy. ``unreadable`` is a change that no decoder understood; ``after`` says what it
    is (``core.log.quarantine.UndecodedRecord``). From ``truncate`` on they are control events, without a row."""

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


# Nobody changes a record, yet it is not frozen: one is made per row, and freezing makes that nine times as slow.
@dataclass(slots=True, unsafe_hash=True)
class ChangeRecord:
    """The order of the fields is the order of the columns.

    ``key`` and ``key_before`` are canonical JSON arrays; ``before`` and ``after`` canonical JSON objects of the *known*
    values: a column present with null is NULL, an absent column is unknown or unchanged. ``order_key`` orders the
    records of a key totally; rows of several keys may stand at one place. ``position`` is the source's own position as
    JSON, kept for support.
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
"""Those whose ``after`` is the image of a row."""

FIELDS: tuple[str, ...] = tuple(field.name for field in fields(ChangeRecord))


def canonical(value: Any) -> str:
    """Canonical JSON text: no spaces, member order kept. Non-finite floats must already be text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
