"""Rows of the state store. It is an index: everything here can be lost and made again from targets and staging, except
requests that no run has started. Times are UTC in ISO form."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState

LEASE_S = 15 * 60.0
"""How long a lane stays ours without a word; every step renews it."""


class Lane(StrEnum):
    """Each lane is held by one run at a time. Copies may take hours, so they do not share the stream's lane."""

    STREAM = "stream"
    COPY = "copy"


@dataclass(frozen=True)
class Claim:
    """A run is copying this table. ``sealed_window`` is the last window sealed before the copy's anchor; it keeps the
    log from being cleaned. The claim is alive while its run holds the copy lane."""

    replicator: str
    table: str
    run_id: str
    sealed_window: int
    since: str


@dataclass(frozen=True)
class AttemptRow:
    """One submission of a Spark job. Open until the end of its driver was seen."""

    id: str
    replicator: str
    kind: str
    run_id: str
    task_id: str
    try_number: int
    folder: str
    tables: tuple[str, ...]
    opened_at: str
    closed_at: str = ""
    outcome: str = ""


@dataclass(frozen=True)
class TableRow:
    """What was last seen of a table. ``failing_since`` and ``attempts`` belong to the present trouble; ``window`` is
    the cursor's, ``fence`` the target's; ``passed`` is how far the log was found to hold nothing more for the table.
    ``fresh_at``: the source's state up to this time is in the target. ``rows`` were counted at ``rows_at``, and are
    still so many where ``rows_current``. ``changes`` are those since the last copy, up to ``counted_run``. ``control``:
    the record as it was last read."""

    table: str
    target: str
    state: TableState
    since: str = ""
    reason: str = ""
    remedy: str = ""
    failing_since: str = ""
    attempts: int = 0
    error: str = ""
    window: int = 0
    fence: int = 0
    rows: int | None = None
    rows_at: str = ""
    rows_current: bool = False
    changes: dict[str, int] = field(default_factory=dict)
    fresh_at: str = ""
    seen_at: str = ""
    passed: int = 0
    counted_run: str = ""
    control: ControlRecord | None = None


@dataclass(frozen=True)
class AuditEntry:
    """A line of the audit: who did what, when; never changed, never removed."""

    at: str
    replicator: str
    actor: str
    action: str
    detail: dict[str, Any]
