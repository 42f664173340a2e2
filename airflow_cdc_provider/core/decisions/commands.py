"""Requests of an operator: written into the state store, carried out by the next run, safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class CommandKind(StrEnum):
    """``pause``, ``resume`` and ``rewind`` need no Spark; ``rewind`` takes a table back, and the change log brings it
    forward again. ``resync`` copies a table again; ``verify`` compares both sides. ``replay`` and ``discard`` are about
    bad records; what was decided stands under ``decisions/`` before the request is made."""

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
    """``tables`` empty means every table. ``key`` makes a repeated request the same request. Times are UTC, ISO form.

    ``run_id`` is the run that carries it out. ``outcome`` says in one line how it ended; ``result`` in detail.
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
