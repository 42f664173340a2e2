"""Commands of an operator: stored in the state store, executed by the next run, idempotent."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


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


RECORD_COMMANDS = frozenset({CommandKind.REPLAY, CommandKind.DISCARD})


class CommandStatus(StrEnum):
    PENDING = "pending"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Command:
    """Empty ``tables``: every table. ``key``: the idempotency key. Times are UTC in ISO 8601 format.

    ``run_id``: the run that executes it. ``outcome``: one line for the operator; ``result``: details.
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

    def names(self, table: str) -> bool:
        return not self.tables or table in self.tables
