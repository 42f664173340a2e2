"""Commands of an operator: stored in the state store, executed by the next run, idempotent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.errors import KeyUsed


class CommandKind(StrEnum):
    """``pause``, ``resume`` and ``rewind`` need no Spark; after a ``rewind`` the change log is applied again.
    ``resync`` copies a table again; ``verify`` compares source and target. ``replay`` and ``discard`` refer to bad
    records; the decision is written under ``decisions/`` before the command."""

    PAUSE = "pause"
    RESUME = "resume"
    REWIND = "rewind"
    RESYNC = "resync"
    VERIFY = "verify"
    REPLAY = "replay"
    DISCARD = "discard"


CARRIED_OUT, BLOCKED = "carried out", "blocked"
"""How a command has ended for a table while it is open for others."""

RECORD_COMMANDS = frozenset({CommandKind.REPLAY, CommandKind.DISCARD})


class CommandStatus(StrEnum):
    PENDING = "pending"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Command:
    """Empty ``tables``: every table. ``key``: the idempotency key. Times are UTC in ISO 8601 format.

    ``run_id``: the run that executes it. ``outcome``: one line for the operator; ``result``: details, or what has
    become of it so far.
    """

    id: str
    replicator: str
    kind: CommandKind
    tables: tuple[str, ...]
    arguments: dict[str, Any]
    key: str
    requested_by: str
    requested_at: str
    status: CommandStatus = CommandStatus.PENDING
    run_id: str = ""
    outcome: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    finished_at: str = ""

    @property
    def finished(self) -> bool:
        return self.status in (CommandStatus.DONE, CommandStatus.FAILED)

    @property
    def ended(self) -> Mapping[str, str]:
        """Tables for which it has ended while it is open for others, and how."""
        ended: Mapping[str, str] = self.result.get("ended", {})
        return ended

    @property
    def ended_tables(self) -> Sequence[Mapping[str, Any]]:
        """What has become of each table for which a pause, resume or rewind has ended so far."""
        tables: Sequence[Mapping[str, Any]] = self.result.get("tables", ())
        return tables

    def names(self, table: str) -> bool:
        """Whether it is about the table, and has not ended for it."""
        return (not self.tables or table in self.tables) and table not in self.ended


def key_used(existing: Command) -> KeyUsed:
    """Why another command cannot have the key of this one."""
    return KeyUsed.of(
        "CMD002",
        "this key was used for another command",
        where=f"{existing.replicator}, key {existing.key}",
        found=f"{existing.kind} of {', '.join(existing.tables) or 'all tables'}",
        do="use a new key, or none",
    )
