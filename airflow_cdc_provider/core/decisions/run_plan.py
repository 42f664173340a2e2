"""The plan of a DAG run: written to staging by ``open_window``, read by all later tasks of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.slices import Slice


class Mode(StrEnum):
    """``stream``: a normal run. ``repair``: a backfill of an interval. ``verify``: compare source and target."""

    STREAM = "stream"
    REPAIR = "repair"
    VERIFY = "verify"


@dataclass(frozen=True)
class RunPlan:
    """``tables``: all tables of the replicator. ``copy``, ``stream``, ``reconcile`` and ``compare``: the tables of the
    parts of the run.

    ``sealed``: the last sealed window at the start of the run; ``lo``: its end (or the start of the stream); ``limit``:
    upper bound of the next window. ``extract``: there are new changes. ``repair``: first and last window of a backfill;
    ``slices``: parts of tables that it copies again. ``repair_tables``: those of ``compare`` whose differing rows are
    read from the source again. ``sampled``: those of which some rows are compared, those after a key. ``commands``: the
    ids of the commands that this run executes. ``opening``: unique per opening of the run. Only step files that name
    it are of this plan: a run that is cleared or repeated has the files of its earlier openings, too. ``hash_key_id``:
    of the key of hashed columns; None before it was recorded. ``definition``: the fingerprint of that by which the run
    was opened; empty for a run from before it was recorded."""

    run_id: str
    mode: Mode
    log_id: str
    owner: str
    epoch: int
    source_identity: dict[str, str]
    tables: tuple[TableTask, ...]
    sealed: int = 0
    lo: dict[str, str] = field(default_factory=dict)
    limit: dict[str, str] = field(default_factory=dict)
    extract: bool = False
    copy: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()
    reconcile: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()
    repair: tuple[int, ...] = ()
    slices: tuple[Slice, ...] = ()
    repair_tables: tuple[str, ...] = ()
    sampled: dict[str, tuple[str, ...]] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)
    opening: str = ""
    hash_key_id: str | None = None
    definition: str = ""

    @property
    def sealing_task(self) -> str:
        """The task that seals windows of the source's stream; empty if none does."""
        if self.extract:
            return "extract"
        return "verify" if self.compare else ""

    def named(self, names: tuple[str, ...]) -> tuple[TableTask, ...]:
        return tuple(task for task in self.tables if task.table in names)
