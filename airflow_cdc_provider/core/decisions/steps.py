"""Input and output of a Spark job: a step file contains one Step, the result file beside it one StepResult."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.columns.copied import names_in_copy
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.spec.definition import Definition, TableRule
from airflow_cdc_provider.core.spec.engines import EngineUse
from airflow_cdc_provider.core.spec.slices import Slice
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.copy_view import CopyView
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.questions import Question
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
class LoggedTable:
    """What the change log has of a table if the copy leaves out some of it: all columns that the YAML selects."""

    schema: TableSchema
    rule: TableRule


@dataclass(frozen=True)
class TableTask:
    """One copy of a table in a run. ``table``: its name.

    ``schema``: of the copy: the selected columns of the source now, with the names and types that the rule gives them,
    and the effective key (of the YAML, or else of the source).
    ``control``: the newest control record of the target, None if the target has no table of this replicator.
    ``identity``: of the table in the source's catalog, if the stream carries all changes up to it. ``rewritten``: the
    source rewrote the rows, and a comparison must show whether they changed. ``withheld``: new columns of a sensitive
    table, which are not copied. ``ignored``: columns that are not copied by an operator's decision; ``schema`` and
    ``rule`` leave them out, ``logged`` has them. ``copies``: of the table, where the task is to read the stream for
    all of them. ``renamed_to``: the name of its table in the source now, empty if that is ``source_table``.
    ``former_names``: further names under which the stream has changes of the table.
    ``log_sha256``: the fingerprint of the settings that its records are read by. ``resyncs``: the open commands that
    another copy of the table carries out.
    ``comments``: of columns in the source's catalog, by their names in the copy; None if the copy does not get them.
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
    ignored: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    renamed_to: str = ""
    former_names: tuple[str, ...] = ()
    comments: dict[str, str] | None = None
    logged: LoggedTable | None = None
    copies: tuple[CopyView, ...] = ()
    log_sha256: str = ""
    resyncs: tuple[str, ...] = ()

    @property
    def views(self) -> tuple[CopyView, ...]:
        """Of the copies for which the stream is read."""
        return self.copies or (CopyView(self.table, self.state, self.control.schema if self.control else None),)

    @property
    def source_table(self) -> str:
        """The name of its table in the change log."""
        return source_table(self.table)

    @property
    def name_in_source(self) -> str:
        return self.renamed_to or self.source_table

    @property
    def cluster_by(self) -> tuple[str, ...]:
        """Columns of the copy."""
        return names_in_copy(self.rule, self.rule.cluster_by)


@dataclass(frozen=True)
class Step:
    """``attempt``: unique per submission. ``folder``: of step and result, relative to the replicator's staging folder.
    ``secrets_path``: a local file with mode 0600 that the driver reads and deletes.

    ``window``: the window to seal (extract, verify), the last sealed window to apply (stage, merge, replay), or the one
    sealed before a copy's anchor (snapshot, resync). ``lo``: start of the window; ``limit``: its upper bound.
    ``compare``: the tables that a verify compares; ``catch_up``: those that only apply its window. ``repair``: first
    and last window to apply again; ``slices``: parts of tables to copy again instead. ``repair_tables``: those of
    ``compare`` whose differing rows are read from the source again; ``sampled``: those of which some rows are compared,
    those after a key. ``merge_of``: the attempt whose
    batches a merge applies. ``opening``: of the plan that the step is of. ``hash_key_id``: of the key of hashed
    columns; None in a run from before it was recorded."""

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
    slices: tuple[Slice, ...] = ()
    repair_tables: tuple[str, ...] = ()
    sampled: dict[str, tuple[str, ...]] = field(default_factory=dict)
    merge_of: str = ""
    opening: str = ""
    jars: tuple[str, ...] = ()
    hash_key_id: str | None = None


class Outcome(StrEnum):
    """``unchanged``: nothing to do. ``fenced``: a newer attempt owns the table; not an error. ``failing``: a retry can
    help. ``blocked``: no retry can help."""

    DONE = "done"
    UNCHANGED = "unchanged"
    FENCED = "fenced"
    FAILING = "failing"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class TableResult:
    """``rows``: read or written. ``counts``: by operation. ``phases``: seconds per phase. ``engine``: what did the
    work, if there was any. ``cost``: what the target bills for it, by unit: ``bytes_billed``, ``slot_ms``.
    ``question``: what a blocked table waits for. ``decided``: bad record → the decision by which it was applied or
    discarded. ``found``: an earlier attempt has committed it, and what it wrote is unknown."""

    table: str
    outcome: Outcome
    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    fence: int | None = None
    window: int | None = None
    problem: Problem | None = None
    phases: dict[str, float] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)
    engine: EngineUse | None = None
    cost: dict[str, int] = field(default_factory=dict)
    question: Question | None = None
    decided: dict[str, str] = field(default_factory=dict)
    found: bool = False


STAGED = "staged"


def has_batch(staged: TableResult) -> bool:
    """Whether there is a batch to merge, which may be so although the stage ended with a problem."""
    return staged.outcome is Outcome.DONE or STAGED in staged.detail


@dataclass(frozen=True)
class WindowResult:
    """The window that extract sealed, or that another attempt had sealed (``adopted``). ``failed``: tables that could
    not be read; for them the window is empty."""

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
    """``problem``: set if the step as a whole failed. ``phases``: seconds per phase of the job. ``application``: the id
    of the Spark application, empty if none was needed. ``history_url``: its page in the history server, empty if there
    is none."""

    kind: StepKind
    attempt: str
    tables: tuple[TableResult, ...] = ()
    window: WindowResult | None = None
    problem: Problem | None = None
    retryable: bool = True
    phases: dict[str, float] = field(default_factory=dict)
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)
    application: str = ""
    history_url: str = ""


@dataclass(frozen=True)
class Batch:
    """The output of stage for one table, and the input of merge: merge-ready rows in ``folder``.

    Built for the target's version at ``fence`` and ``lo_window``; ``window`` is the cursor after the merge.
    ``partial``: some rows lack columns. ``truncated``: rows that are not in the batch are deleted; of those with an
    order key, only up to ``truncated_at``, unless it is empty. ``bounds``: name,
    least and greatest value of leading key columns, as SQL literals of the target. ``added``: columns that the target
    does not have. ``repair``: the batch applies windows again with the row guard "not older", and keeps the cursor.
    ``carry``, ``retired_below``, ``ignored`` and ``versions_until``: for the control record; None: as before.
    ``high``: the high watermark of rows that were copied. ``newest``: the highest order key of the batch, of a
    source that delivers changes late."""

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
    truncated_at: str = ""
    repair: bool = False
    bounds: tuple[tuple[str, str, str], ...] = ()
    added: tuple[Column, ...] = ()
    accounting: dict[str, int] = field(default_factory=dict)
    carry: CarryOver = NOTHING
    retired_below: str = ""
    ignored: dict[str, str] | None = None
    versions_until: str = ""
    high: int | None = None
    newest: str = ""
