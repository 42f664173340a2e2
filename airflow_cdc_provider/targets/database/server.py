"""What a database answers over a connection. Sessions are DB-API connections with parameters written ``%s``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.targets.database.sql import Sql

CONNECT_LIMIT_S = 10
KEEPALIVE_S = 60
COMMITTING = frozenset({"commit", "read back", "prepare"})
"""Purposes of sessions that hold the lock of a table."""

IDLE_LIMIT_S = 60
"""A process that freezes while it holds the lock loses its session, and with it the lock."""

SWAP_LIMIT_S = 600
"""How long a new copy waits for those who still read the old one."""

LOCK_LIMIT_S = 120
"""How long a commit waits for another one of the same table."""


@dataclass(frozen=True)
class JdbcAddress:
    """How Spark's JDBC source reaches the server."""

    url: str
    driver: str
    user: str
    password: str
    session_init: str


class Server(Protocol):
    """Goes to Spark's executors with the tasks that load rows, so it must be picklable. ``longest_name`` in bytes."""

    longest_name: ClassVar[int]

    @property
    def sql(self) -> Sql: ...

    @property
    def schema(self) -> str: ...

    @property
    def place(self) -> str:
        """Where errors say it happened: server, database or schema, user."""

    def unverified(self) -> list[Problem]:
        """How the connection leads to the server without TLS being verified. Asks nobody."""

    def session(self, purpose: str) -> AbstractContextManager[Any]:
        """A connection that commits when told to and is closed behind the block. Errors of the server come out as
        CdcError: TargetUnavailable where trying again can help, CheckFailed where a right is missing, Blocked where a
        value does not fit."""

    def comment(self, cursor: Any, table: str) -> str | None:
        """The comment of a table; None where there is no table of the name."""

    def columns(self, cursor: Any, table: str) -> list[str]: ...

    def tables_like(self, cursor: Any, prefix: str) -> list[str]: ...

    def lock(self, cursor: Any, name: str) -> None:
        """Wait until nobody else holds this lock and hold it until the session or its transaction ends. Whoever holds
        it knows the outcome of every commit that anybody has begun."""

    def settle(self, cursor: Any, table: str, index: Sequence[str], unique: bool, constraint: str) -> None:
        """Make a loaded table fast: its key, and what the planner wants to know. ``index``: columns, may be empty."""

    def swap(self, connection: Any, shadow: str, table: str, replaced: str, exists: bool) -> None:
        """Commit the open transaction and let ``shadow`` stand under the name ``table``, together or, where the
        database cannot do that, the latter last and at once."""

    def drop_if_free(self, connection: Any, table: str) -> bool:
        """Drop a table unless somebody uses it. Whether it is gone. What the transaction did before stands either
        way."""

    def copy_in(self, connection: Any, table: str, columns: Mapping[str, bool], batches: Iterable[Any]) -> int:
        """Load Arrow batches of texts. ``columns``: name → whether its text is the hex of bytes. The number of rows."""

    def jdbc(self) -> JdbcAddress: ...

    def complaints(self, cursor: Any) -> Iterable[Problem]:
        """What is wrong with the server for our purpose, besides rights."""
