"""The input of a run's decision: the definition, the status of the source, the change log and the tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.listed_tables import GoneTable, NewTable
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.proof.schedule import DueComparison
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.identity import NO_UNLOGGED_CHANGES, TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.states import State
from airflow_cdc_provider.core.table.unfit import Unfit


@dataclass(frozen=True)
class TableFacts:
    """A selected table. ``exists``: the target has a table of this name, of any origin. ``restored``: the table was
    restored to an earlier version by another tool. ``known``: it was replicated before. ``first_copy``: the state of
    its first copy, if that is paused or blocked. ``copied_by``: another active run that copies it. ``missed_by``: one
    that reads a window without it, or by other settings of it. ``problem``: its status in the target could not be read.
    ``announced``: a window shows columns that changed without rows.
    ``renamed``: it has another name, and an operator must say whether that is to be followed. ``refused``: why no run
    copies the table as source and target are now; ``unfit``: why its present copy takes no changes. ``left_out``: why
    the log of the source leaves it out, if no hole says so yet. ``identity``: the table in the source's catalog now;
    ``unlogged``: changes since the copy's state that are not in the stream. ``due``: the comparison that is due now,
    without a command. ``failing``: what the last run did with it failed."""

    task: TableTask
    exists: bool = False
    restored: bool = False
    known: bool = False
    first_copy: State | None = None
    copied_by: str = ""
    missed_by: str = ""
    problem: Problem | None = None
    announced: bool = False
    renamed: bool = False
    refused: Problem | None = None
    unfit: Unfit | None = None
    left_out: str = ""
    identity: TableIdentity | None = None
    unlogged: UnloggedChanges = NO_UNLOGGED_CHANGES
    due: DueComparison | None = None
    failing: bool = False


@dataclass(frozen=True)
class LogFacts:
    """``oldest``: the oldest window, ``sealed``: the last one; ``epoch`` and ``hi``: of the last one; 0 if there is no
    window. ``manifests``: all windows after the lowest cursor. ``sha256``: of the manifests that control records name;
    empty if the log does not have them."""

    log_id: str
    oldest: int = 0
    sealed: int = 0
    epoch: int = 0
    hi: Position = field(default_factory=dict)
    manifests: Mapping[int, Manifest] = field(default_factory=dict)
    sha256: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamFacts:
    """The status of the source at the current position. ``limit``: upper bound of the next window. ``idle``: the end of
    an empty window, if one may be sealed. ``lost``: why the position is no longer served. ``outside``: tables whose
    changes the stream does not carry now. ``at``: the source's clock, UTC in ISO 8601 format; empty if it shows
    none."""

    has_changes: bool = False
    limit: Position = field(default_factory=dict)
    idle: Position | None = None
    lost: Problem | None = None
    outside: Mapping[str, Problem] = field(default_factory=dict)
    at: str = ""

    def without(self, tables: Collection[str]) -> StreamFacts:
        """Of a stream that has a position for each table: these are not read."""
        limit = {name: at for name, at in self.limit.items() if name not in tables}
        return replace(self, limit=limit, has_changes=self.has_changes and bool(limit))


@dataclass(frozen=True)
class Facts:
    """``stream_lane`` and ``copy_lane``: whether this run has the lease. ``interval``: start and end of a backfill, UTC
    in ISO 8601 format. ``unselected``: problems of tables and patterns of the YAML that cannot be copied. ``new``:
    tables that are not copied yet. ``gone``: tables that the source no longer lists. ``hash_key_id``: of the key of
    hashed columns."""

    definition: Definition
    run_id: str
    mode: Mode
    at: str
    owner: str
    source_identity: dict[str, str]
    log: LogFacts
    stream: StreamFacts
    tables: tuple[TableFacts, ...]
    unselected: tuple[Problem, ...] = ()
    new: tuple[NewTable, ...] = ()
    gone: tuple[GoneTable, ...] = ()
    commands: tuple[Command, ...] = ()
    hash_key_id: str = ""
    stream_lane: bool = True
    copy_lane: bool = True
    interval: tuple[str, str] | None = None
