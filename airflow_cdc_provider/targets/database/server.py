"""The protocol of database servers. Sessions are DB-API connections with parameters written ``%s``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database.limits import Limits
from airflow_cdc_provider.targets.database.sql import Sql

COMMITTING = frozenset({"commit", "read back", "prepare", "alter"})
"""Purposes of sessions that hold the lock of a table."""

IDLE_LIMIT_S = 60
"""A process that freezes while it holds the lock loses its session and the lock."""

SWAP_LIMIT_S = 600
"""How long a new copy waits for readers of the old one."""

LOCK_LIMIT_S = 120
"""How long a commit waits for another commit to the same table."""


@dataclass(frozen=True)
class JdbcAddress:
    """How Spark's JDBC source reaches the server."""

    url: str
    driver: str
    user: str
    password: str
    session_init: str


class Server(Protocol):
    """Pickled and sent to Spark's executors with the tasks that load rows. ``limits``: of one table.
    ``swaps_under_lock``: the lock of a table is held until ``swap`` has ended. ``alters_in_transactions``: ALTER TABLE
    … ADD COLUMN does not commit the open transaction."""

    limits: ClassVar[Limits]
    swaps_under_lock: ClassVar[bool]
    alters_in_transactions: ClassVar[bool]

    @property
    def sql(self) -> Sql: ...

    @property
    def schema(self) -> str: ...

    @property
    def address(self) -> str:
        """Server, database or schema, and user, for error messages."""

    def tls_warnings(self) -> list[Problem]:
        """Problems of a connection that does not verify the server by TLS. Does not connect."""

    def session(self, purpose: str, window: int | None = None) -> AbstractContextManager[Any]:
        """A connection with explicit commits, closed after the block. ``window``: the one that is committed, for the
        server's own log of queries. Server errors are raised as CdcError: TargetUnavailable if a retry can help,
        TransactionConflict if the transaction only has to run again, CheckFailed if a privilege is missing, Blocked if
        a value does not fit.
        """

    def comment(self, cursor: Any, table: str) -> str | None:
        """The comment of a table; None if there is no such table."""

    def columns(self, cursor: Any, table: str) -> list[str]: ...

    def tables_like(self, cursor: Any, prefix: str) -> list[str]: ...

    def existing(self, cursor: Any, tables: Collection[str]) -> Collection[str]:
        """Those of ``tables`` that exist, by one query, or by a listing that costs no computing time."""

    def other_collations(self, cursor: Any, table: str) -> list[str]:
        """The columns of a table in which texts of other characters may be equal, each with its collation."""

    def lock_table(self, cursor: Any, target_table: str) -> None:
        """Wait for the lock of a table and hold it until the session or its transaction ends. Under the lock, no commit
        of another session to the table is in flight."""

    def lock_cut(self, cursor: Any, replicator: str) -> None:
        """As ``lock_table``, for the published cut of a replicator."""

    def lock_own_tables(self, cursor: Any) -> None:
        """As ``lock_table``, for the creation of our own tables."""

    def index_and_analyze(self, cursor: Any, table: str, index: Sequence[str], unique: bool, constraint: str) -> None:
        """Add the key of a loaded table and collect planner statistics. ``index``: columns, may be empty."""

    def swap(self, connection: Any, shadow: str, table: str, replaced: str, exists: bool) -> None:
        """Commit the open transaction and rename ``shadow`` to ``table``, atomically; where the database cannot do
        both, the rename follows the commit as one statement."""

    def drop_if_unused(self, connection: Any, table: str) -> bool:
        """Drop a table unless a session uses it. Returns whether it was dropped. Earlier statements of the transaction
        stay in effect either way."""

    def server_problems(self, cursor: Any) -> Iterable[Problem]:
        """Problems of the server's version and settings."""


@runtime_checkable
class LocksTables(Protocol):
    """A server whose locks are those of empty tables, one for each target table."""

    def lock_table_name(self, target_table: str) -> str: ...


@runtime_checkable
class CarriesOver(Protocol):
    """A server whose tables have more than rows, which a new copy has to get."""

    def require_replaceable(self, cursor: Any, table: str) -> None:
        """Raises Blocked (TGT066) where something depends on the table that a new copy cannot get."""


@runtime_checkable
class ShowsTypes(Protocol):
    """A server whose columns can get types that round values, or store them otherwise, without an error."""

    @property
    def sql(self) -> Sql: ...

    def declared_types(self, cursor: Any, table: str) -> Mapping[str, str]:
        """The type of each column of a table by ``column_id``, as the catalog spells it, in lower case."""

    def catalog_type(self, column: Column, in_key: bool) -> str:
        """How the catalog spells the type of a column of a copy."""


@runtime_checkable
class ChangesRows(Protocol):
    """A server with triggers, rules or attributes of columns that change or skip the rows of a statement."""

    def changes_of_rows(self, cursor: Any, table: str, columns: Collection[str]) -> list[str]:
        """What somebody gave to a table that does so. ``columns``: of the copy; further ones may change."""


@runtime_checkable
class LosesRows(Protocol):
    """A server that deletes rows or tables by itself when a time is over."""

    def losses_of_rows(self, cursor: Any, table: str) -> list[str]:
        """What a table and its control table were given, or have inherited, that does so."""


@runtime_checkable
class NamesTransactions(Protocol):
    """A server whose sessions go on in a new transaction when one is aborted from outside."""

    def transaction(self, cursor: Any) -> str:
        """The open transaction of the session."""


@runtime_checkable
class ReadsByJdbc(Protocol):
    """A server whose tables Spark reads by JDBC."""

    def jdbc(self) -> JdbcAddress: ...


@runtime_checkable
class ReadsTables(Protocol):
    """A server whose tables have parts that Spark's tasks can fetch without a query."""

    def table_parts(self, table: str, columns: Sequence[str]) -> Sequence[Any]:
        """As ``result_parts``. Values are texts, or floats."""


@runtime_checkable
class ReadsByParts(Protocol):
    """A server whose results have parts that Spark's tasks can fetch."""

    def result_parts(self, query: str) -> Sequence[Any]:
        """Objects with a method ``to_arrow``, which can be pickled."""
