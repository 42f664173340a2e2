"""What a run knows before it decides: the definition, the source's news, the change log, and every table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.identity import NO_UNLOGGED_CHANGES, TableIdentity, UnloggedChanges


@dataclass(frozen=True)
class TableFacts:
    """A selected table. ``exists``: the target holds a table at its place, ours or not. ``restored``: somebody took it
    back to an earlier version. ``known``: it was replicated before. ``copied_by``: another live run that copies it.
    ``problem``: what stands in the target could not be read. ``identity``: what the source's catalogue says of the
    table now; ``unseen``: what has happened to the table since the state that its copy holds, and is not in the
    stream."""

    task: TableTask
    exists: bool = False
    restored: bool = False
    known: bool = False
    copied_by: str = ""
    problem: Problem | None = None
    identity: TableIdentity | None = None
    unseen: UnloggedChanges = NO_UNLOGGED_CHANGES


@dataclass(frozen=True)
class LogFacts:
    """``oldest``, ``sealed`` and ``epoch`` are 0 where no window was sealed. ``epoch`` and ``hi`` are those of the last
    one. ``manifests`` holds every window after the lowest cursor; ``sha256`` the manifests that control records name,
    empty text where the log does not have them."""

    log_id: str
    oldest: int = 0
    sealed: int = 0
    epoch: int = 0
    hi: Position = field(default_factory=dict)
    manifests: Mapping[int, Manifest] = field(default_factory=dict)
    sha256: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamFacts:
    """The source's answer about our position. ``limit``: how far a window may reach. ``idle``: where an empty window
    may end. ``lost``: why our position is not served any more. ``outside``: tables whose changes the stream does not
    carry now."""

    has_changes: bool = False
    limit: Position = field(default_factory=dict)
    idle: Position | None = None
    lost: Problem | None = None
    outside: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """``stream_lane`` and ``copy_lane``: this run holds them. ``interval``: start and end of a backfill, UTC, ISO.
    ``unselected``: tables or patterns of the YAML that cannot be copied, by how the YAML spells them."""

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
    commands: tuple[Command, ...] = ()
    stream_lane: bool = True
    copy_lane: bool = True
    interval: tuple[str, str] | None = None
