"""What a Spark job is told and what it says. A step file holds one Step; the result beside it one StepResult."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.spec.definition import Definition, TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import TableState


class StepKind(StrEnum):
    SNAPSHOT = "snapshot"
    EXTRACT = "extract"
    STAGE = "stage"
    MERGE = "merge"
    RESYNC = "resync"
    REPLAY = "replay"
    VERIFY = "verify"


@dataclass(frozen=True)
class TableTask:
    """One table as a run sees it.

    ``schema`` holds the selected columns as the source describes them now, with the key in force (the YAML's, else the
    source's own). ``control`` is the newest control record of the target, None where the target holds no table of ours.
    ``identity``: what the source's catalogue says of the table, where the stream carries all that has led to it.
    ``rewritten``: the source wrote its rows anew, and a comparison has to show that they are what they were.
    """

    table: str
    target: str
    schema: TableSchema
    rule: TableRule
    definition_sha256: str
    state: TableState
    control: ControlRecord | None = None
    identity: TableIdentity | None = None
    rewritten: bool = False


@dataclass(frozen=True)
class Step:
    """``attempt`` is unique per submission. ``folder`` is where step and result stand, relative to the replicator's
    staging folder. ``secrets_path`` is a local 0600 file that the driver reads and deletes.

    ``window`` is the window to land (extract, verify) or the last sealed window to apply (stage, merge, replay), or the
    one sealed before a copy's anchor (snapshot, resync). ``lo`` is where the window starts, ``limit`` where it must end
    at the latest. ``compare`` names the tables that a verify compares, ``catch_up`` those that only take what it
    landed. ``repair`` names the first and last window of a slice to apply again. ``merge_of`` is the attempt whose
    batches a merge applies.
    """

    kind: StepKind
    definition: Definition
    run_id: str
    attempt: str
    folder: str
    secrets_path: str
    owner: str
    log_id: str
    epoch: int
    source_identity: dict[str, str]
    tables: tuple[TableTask, ...]
    window: int = 0
    lo: dict[str, str] = field(default_factory=dict)
    limit: dict[str, str] = field(default_factory=dict)
    compare: tuple[str, ...] = ()
    catch_up: tuple[str, ...] = ()
    repair: tuple[int, ...] = ()
    merge_of: str = ""
    jars: tuple[str, ...] = ()


class Outcome(StrEnum):
    """``unchanged``: nothing to do. ``fenced``: somebody newer owns the table; quiet. ``failing``: a retry can cure it.
    ``blocked``: no retry can."""

    DONE = "done"
    UNCHANGED = "unchanged"
    FENCED = "fenced"
    FAILING = "failing"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class TableResult:
    """``rows`` read or written; ``counts`` by operation; ``differences`` are filled by verify only."""

    table: str
    outcome: Outcome
    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    fence: int | None = None
    window: int | None = None
    problem: Problem | None = None
    phases: dict[str, float] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)


STAGED = "staged"


def has_batch(staged: TableResult) -> bool:
    """There is something to merge, also where the stage had to stop early and says why."""
    return staged.outcome is Outcome.DONE or STAGED in staged.detail


@dataclass(frozen=True)
class WindowResult:
    """What extract sealed, or found sealed by another attempt (``adopted``). ``failed``: tables that could not be read;
    the window ends for them where it began."""

    window: int
    lo: dict[str, str]
    hi: dict[str, str]
    records: int
    files: int
    bytes: int
    adopted: bool = False
    cut: str = ""
    failed: dict[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True)
class StepResult:
    """``problem`` is set where the step as a whole failed. ``phases`` are seconds per phase of the job."""

    kind: StepKind
    attempt: str
    tables: tuple[TableResult, ...] = ()
    window: WindowResult | None = None
    problem: Problem | None = None
    retryable: bool = True
    phases: dict[str, float] = field(default_factory=dict)
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """What stage hands to merge for one table: merge-ready rows in ``folder`` and how to apply them.

    Built from the target's state at ``fence`` and ``lo_window``; after it the cursor is ``window``. ``partial``: some
    rows do not know all columns. ``truncated``: rows not in the batch go. ``bounds``: per leading key column the least
    and the largest value, as SQL literals of the target. ``added``: columns the target lacks. ``repair``: the batch
    applies a slice again, with the guard "not older", and leaves the cursor. ``carry`` and ``retired_below`` go into
    the control record.
    """

    table: str
    folder: str
    fence: int
    lo_window: int
    window: int
    schema: TableSchema
    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    partial: bool = False
    truncated: bool = False
    repair: bool = False
    bounds: tuple[tuple[str, str, str], ...] = ()
    added: tuple[Column, ...] = ()
    accounting: dict[str, int] = field(default_factory=dict)
    carry: CarryOver = NOTHING
    retired_below: str = ""
