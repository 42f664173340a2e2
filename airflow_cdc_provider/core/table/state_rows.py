"""Rows of the state store. The store is an index: it can be rebuilt from targets and staging, except for commands that
no run has started. Times are UTC in ISO 8601 format."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.table.attainment import Attainment
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.costs import Cost
from airflow_cdc_provider.core.table.past_states import PastState
from airflow_cdc_provider.core.table.questions import Question
from airflow_cdc_provider.core.table.states import WITHOUT_COPY, TableState
from airflow_cdc_provider.core.table.verified import Verified

LEASE_S = 15 * 60.0
"""Duration of a lease without renewal; every step renews it."""


class Lane(StrEnum):
    """One run at a time has a lane. Copies may take hours, so they have a lane of their own."""

    STREAM = "stream"
    COPY = "copy"


@dataclass(frozen=True)
class Claim:
    """A run is copying this table. ``sealed_window``: the last window sealed before the copy's anchor; later windows
    are retained. The claim is valid while its run has the copy lane."""

    replicator: str
    table: str
    run_id: str
    sealed_window: int
    since: str


@dataclass(frozen=True)
class AttemptRow:
    """One submission of a Spark job. Open until the end of its driver is observed."""

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
    """The last observed status of a table. ``failing_since`` and ``attempts`` belong to the current failure.
    ``window``: of the cursor; ``fence``: of the target; ``passed``: the last window up to which the log contains
    nothing to apply. ``fresh_at``: the target contains the source's state up to this time of the source's clock, which
    was ``clock_ahead_s`` ahead of the state store's. ``rows``: counted at ``rows_at``, still valid if ``rows_current``.
    ``changes``: counted since the last copy, up to ``counted_opening`` of a run. ``changed``: other data since the last
    asset event. ``engine``: what did the work of the last commit. ``seen_at``: when the target was read, by the state
    store's clock. ``withheld``: new columns of a sensitive table. ``question``: what a new table waits for.
    ``verified``: the last comparison with the source. ``attainment``: how long the copy was late. ``recent``: changes
    by half hour, see ``recent_changes``; ``costs``: by day. ``backlog``: bytes of the change log that the copy did not
    have at the end of the last run. ``history``: the last states, the current one last. ``control``: the record as last
    read."""

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
    clock_ahead_s: float = 0.0
    seen_at: str = ""
    passed: int = 0
    changed: bool = False
    counted_opening: str = ""
    engine: str = ""
    withheld: tuple[str, ...] = ()
    question: Question | None = None
    verified: Verified | None = None
    attainment: Attainment = field(default_factory=Attainment)
    recent: dict[str, int] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    backlog: int | None = None
    history: tuple[PastState, ...] = ()
    control: ControlRecord | None = None

    @property
    def carry(self) -> CarryOver:
        """What waits for a run or an operator: nothing once the table is not copied any more."""
        return self.control.carry if self.control and self.state not in WITHOUT_COPY else NOTHING

    @property
    def quarantined(self) -> int:
        """Bad records that wait for a decision: in quarantine, or because they stop the table."""
        stopping = self.control.state.bad_records if self.control and self.state is TableState.BLOCKED else 0
        return self.carry.quarantined + stopping

    @property
    def open_question(self) -> Question | None:
        """What the table waits for, or what is asked about rows that differ from the source; None once it is not copied
        any more."""
        match self.state:
            case TableState.NEW:
                return self.question
            case TableState.DROPPED:
                return None
        of_state = self.control.state.question if self.control else None
        return of_state or (self.verified.question if self.verified else None)


@dataclass(frozen=True)
class AuditEntry:
    """An entry of the audit log. Entries are never changed or removed. ``number``: in the order of all entries."""

    number: int
    at: str
    replicator: str
    actor: str
    action: str
    detail: dict[str, Any]
