"""Sessions with a SQL Server, by the driver python-tds. Its errors are raised as CdcError.

This is the only module that talks to a server, and it has never talked to a real one.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from airflow_cdc_provider.connectors import server_errors
from airflow_cdc_provider.connectors.sources.sqlserver.tls_socket import TlsSocket
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.sqlserver_access import SqlServerTls, sqlserver_tls
from airflow_cdc_provider.core.connections.sqlserver_errors import meaning
from airflow_cdc_provider.core.connections.sqlserver_settings import AUTOCOMMIT, settings_batch
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, PositionLost, Problem
from airflow_cdc_provider.core.registry import load_library

DEFAULT_PORT = 1433
CONNECT_LIMIT_S = 15
READ_LIMIT_S = 600
FETCHED_ROWS = 10_000

LOGIN_REJECTED = frozenset({4060, 18452, 18456, 18486, 18487, 18488})
NO_SUCH_OBJECT = 208


class Session(Protocol):
    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query. Read them before the next query."""


class Client(Protocol):
    """Opens sessions for one replicator, and keeps none open."""

    @property
    def address(self) -> str:
        """The server and login as error messages name them."""

    def session(self, purpose: str, *, snapshot: bool = False) -> AbstractContextManager[Session]:
        """A context with a Session. Each statement is a transaction of its own. ``snapshot``: under snapshot isolation,
        so a statement reads the rows that were committed when it began, and blocks no writer."""

    def tls_warnings(self) -> list[Problem]: ...


class SqlServerClient:
    def __init__(self, info: ConnectionInfo, replicator: str) -> None:
        self.info = info
        self.replicator = replicator

    @property
    def address(self) -> str:
        return f"{self.info.host}:{self.info.port or DEFAULT_PORT}/{self.info.schema} as {self.info.login}"

    def tls_warnings(self) -> list[Problem]:
        return sqlserver_tls(self.info).warnings()

    @contextmanager
    def session(self, purpose: str, *, snapshot: bool = False) -> Iterator[Session]:
        tls = sqlserver_tls(self.info)
        pytds = load_library("pytds", "source", "sqlserver")
        with self._connect(pytds, tls, purpose) as connection:
            session = _PytdsSession(pytds, connection, self.address)
            session.run(f"{settings_batch()}; {AUTOCOMMIT}")
            session.run(f"SET TRANSACTION ISOLATION LEVEL {'SNAPSHOT' if snapshot else 'READ COMMITTED'}")
            yield session

    def _connect(self, pytds: Any, tls: SqlServerTls, purpose: str) -> Any:
        """A rejected or lost connection is one of the errors of the driver, or of a socket."""
        context = tls.context() if tls.enabled else None
        try:
            connection = socket.create_connection((self.info.host, self.info.port or DEFAULT_PORT), CONNECT_LIMIT_S)
            return pytds.connect(
                dsn=self.info.host,
                port=self.info.port or DEFAULT_PORT,
                database=self.info.schema,
                user=self.info.login,
                password=self.info.password,
                sock=TlsSocket(connection, context, self.info.host) if context else connection,
                autocommit=True,
                login_timeout=CONNECT_LIMIT_S,
                timeout=READ_LIMIT_S,
                appname=f"cdc:{self.replicator}:{purpose}",
                disable_connect_retry=True,
            )
        except (pytds.Error, OSError) as error:
            text = describe(error)
            if UNTRUSTED.search(text):
                raise untrusted(self.address, self.info.connection_id, text, '`"tls_ca": …`') from error
            if error_number(error) in LOGIN_REJECTED:
                raise server_errors.login_rejected(self.address, text, self.info.connection_id) from error
            raise server_errors.unreachable(self.address, text) from error


class _PytdsSession:
    def __init__(self, pytds: Any, connection: Any, address: str) -> None:
        self._pytds, self._connection, self._address = pytds, connection, address

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(query)
            while rows := cursor.fetchmany(FETCHED_ROWS):
                yield from rows

    def run(self, statement: str) -> None:
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(statement)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._pytds.Error, OSError) as error:
            raise translated(error, self._address) from error


def error_number(error: BaseException) -> int:
    """The server's number of the error, 0 if there is none."""
    number = getattr(error, "number", None) or getattr(error, "msg_no", None)
    return number if isinstance(number, int) else 0


def describe(error: BaseException) -> str:
    """The number and the first line of the message."""
    lines = str(error).splitlines() or [type(error).__name__]
    return f"{error_number(error)}: {lines[0][:300]}"


def translated(error: BaseException, address: str) -> CdcError:
    """Conflicts of a snapshot with DDL, deadlocks and lost connections are among the errors that can be retried."""
    number, text = error_number(error), describe(error)
    if number == NO_SUCH_OBJECT:
        return CheckFailed.of(
            "SRC123",
            "an object that reading the changes requires does not exist",
            where=address,
            found=text,
            allowed="a database with Change Data Capture, and its change tables",
            do="run `airflow cdc check`: it shows the statements",
        )
    return server_errors.server_failed(address, text, meaning(number))


def position_lost(address: str, replicator: str, found: str) -> PositionLost:
    return PositionLost.of(
        "SRC013",
        "the source no longer has the position that was read last",
        where=address,
        found=found,
        allowed="change tables that are kept until they have been read (retention of the cleanup job)",
        data="the target tables are at their cursors; later changes are not in the change log",
        do=f"airflow cdc resync {replicator}",
    )
