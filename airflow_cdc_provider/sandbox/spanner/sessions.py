"""Sessions, and the transactions that requests name."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from airflow_cdc_provider.sandbox.spanner.clock import EPOCH
from airflow_cdc_provider.sandbox.spanner.database import Database, ReadWrite
from airflow_cdc_provider.sandbox.spanner.errors import invalid, not_found

VERSIONS_KEPT_US = 3_600_000_000
"""Spanner keeps versions for an hour, unless the database says otherwise."""


@dataclass
class OpenSession:
    """``transactions``: read-write ones, or the time of a read-only one."""

    name: str
    database: Database
    multiplexed: bool
    transactions: dict[bytes, ReadWrite | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Selected:
    """What a request reads: at this time, for a read-write transaction or not. ``begun``: the id of a transaction that
    begins with the request."""

    time: int
    transaction: ReadWrite | None = None
    begun: bytes = b""


class Sessions:
    def __init__(self) -> None:
        self._sessions: dict[str, OpenSession] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def create(self, database: Database, multiplexed: bool) -> OpenSession:
        with self._lock:
            session = OpenSession(f"{database.name}/sessions/s{next(self._numbers)}", database, multiplexed)
            self._sessions[session.name] = session
            return session

    def get(self, name: str) -> OpenSession:
        found = self._sessions.get(name)
        if found is None:
            raise not_found(f"Session not found: {name}")
        return found

    def delete(self, name: str) -> None:
        self._sessions.pop(name, None)

    def begin(self, session: OpenSession, options: Any) -> tuple[bytes, int | None]:
        """The id of a new transaction, and the time that a read-only one reads."""
        mode = options.WhichOneof("mode")
        with self._lock:
            number = f"t{next(self._numbers)}".encode()
        if mode == "read_write":
            session.transactions[number] = ReadWrite()
            return number, None
        if mode == "read_only":
            time = read_time(session.database, options.read_only)
            session.transactions[number] = time
            return number, time
        raise invalid(f"transactions of the mode {mode} are not supported")

    def select(self, session: OpenSession, selector: Any) -> Selected:
        """``selector``: a message TransactionSelector; without one, the newest rows."""
        match selector.WhichOneof("selector"):
            case "id":
                return self._of(session, selector.id)
            case "begin":
                number, _ = self.begin(session, selector.begin)
                selected = self._of(session, number)
                return Selected(selected.time, selected.transaction, number)
            case "single_use":
                if selector.single_use.WhichOneof("mode") != "read_only":
                    raise invalid("A single-use transaction of a read must be read-only.")
                return Selected(read_time(session.database, selector.single_use.read_only))
        return Selected(session.database.now())

    def _of(self, session: OpenSession, number: bytes) -> Selected:
        found = session.transactions.get(number)
        if found is None:
            raise not_found("Transaction not found.")
        if isinstance(found, int):
            return Selected(found)
        return Selected(session.database.now(), found)


def read_time(database: Database, options: Any) -> int:
    """``options``: a message TransactionOptions.ReadOnly."""
    now = database.now()
    match options.WhichOneof("timestamp_bound"):
        case "read_timestamp":
            time = _microseconds(options.read_timestamp.ToDatetime(tzinfo=EPOCH.tzinfo))
        case "exact_staleness":
            time = now - options.exact_staleness.ToMicroseconds()
        case None | "strong":
            return now
        case other:
            raise invalid(f"the timestamp bound {other} is not supported")
    if time < now - VERSIONS_KEPT_US:
        raise invalid("The read timestamp is older than version_retention_period.")
    return int(time)


def _microseconds(moment: datetime) -> int:
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
