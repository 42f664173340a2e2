"""Open sessions with a database, and map its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from airflow_cdc_provider.connectors import server_errors
from airflow_cdc_provider.connectors.sources.jdbc_poll.error_codes import error_codes, meaning_of
from airflow_cdc_provider.connectors.sources.jdbc_poll.extras import POSTGRES, read_extra
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.connectors.sources.jdbc_poll.settings import fix_settings
from airflow_cdc_provider.connectors.sources.jdbc_poll.types import REFLECTED_NAMES, TYPES
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.error_classes import ErrorClass
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, NotInstalled, SourceUnavailable, SourceUnreachable

CLOCKS: Mapping[str, str] = {
    "postgresql": "SELECT clock_timestamp()",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "mariadb": "SELECT UTC_TIMESTAMP(6)",
    "mssql": "SELECT SYSUTCDATETIME()",
    "oracle": "SELECT SYS_EXTRACT_UTC(SYSTIMESTAMP) FROM DUAL",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
}
"""The server's time in UTC."""

PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "oracle": 1521, "mssql": 1433}
"""Default ports."""

IDENTITY_EXTRAS = frozenset({"host", "service_name", "sid", "instance", "unix_socket"})
"""Extras of a connection that select the server or the database."""


class Database:
    """Opens sessions, without a pool."""

    def __init__(self, info: ConnectionInfo, options: JdbcPollOptions) -> None:
        self.info = info
        self.options = options

    @property
    def location(self) -> str:
        """``where`` of problems."""
        return f"{self.info.host}:{self.info.port or ''}/{self.info.schema} as {self.info.login}"

    @cached_property
    def engine(self) -> sa.Engine:
        info = self.info
        extra = read_extra(self.options.driver, info)
        try:
            url = URL.create(
                self.options.driver,
                info.login or None,
                info.password or None,
                info.host or None,
                info.port,
                info.schema or None,
                extra.query,
            )
            engine = sa.create_engine(url, poolclass=NullPool, connect_args=dict(extra.arguments))
        except (sa.exc.NoSuchModuleError, sa.exc.ArgumentError, ModuleNotFoundError) as error:
            raise NotInstalled.of(
                "ENV010",
                "the driver of the source is not installed",
                where="`driver` under `source`",
                found=f"{self.options.driver}: {_first_line(error)}",
                do="install its Python package on workers and executors, or correct the name",
            ) from error
        if engine.dialect.name not in TYPES:
            raise CheckFailed.of(
                "SRC161",
                "this system cannot be polled: its types and settings are not known",
                where="`driver` under `source`",
                found=f"{self.options.driver}, a driver of {engine.dialect.name}",
                allowed=f"drivers of {', '.join(TYPES)}",
                do="name another driver, or write a source of your own: docs/guides/write-your-own-source.md",
            )
        fix_settings(engine)
        dialect: Any = engine.dialect
        dialect.ischema_names = {**dialect.ischema_names, **REFLECTED_NAMES.get(dialect.name, {})}
        return engine

    @property
    def system(self) -> str:
        return self.engine.dialect.name

    @contextmanager
    def session(self, autocommit: bool = True) -> Iterator[sa.Connection]:
        """A session under the fixed settings. Streamed results require a transaction, so ``autocommit=False``."""
        try:
            connected = self.engine.connect()
        except sa.exc.DBAPIError as error:
            raise self._failure(error, connecting=True) from error
        with self.errors(), connected as connection:
            if autocommit:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._failure(error) from error

    def now(self, connection: sa.Connection) -> datetime:
        """The server's clock, in UTC."""
        value = connection.exec_driver_sql(CLOCKS.get(self.system, "SELECT CURRENT_TIMESTAMP")).scalar_one()
        now = datetime.fromisoformat(value) if isinstance(value, str) else value
        if now.tzinfo is not None:
            return now.astimezone(UTC)
        offset = timedelta(0) if self.system in CLOCKS else self.options.offset
        return now.replace(tzinfo=UTC) - offset

    def identity(self) -> dict[str, str]:
        """From the connection, because no statement identifies the server on every system. A database that is not in
        the path of the URL, such as an Oracle service, is in the extras."""
        url = self.engine.url
        query = {name: value for name, value in url.query.items() if name in IDENTITY_EXTRAS and isinstance(value, str)}
        port = url.port or PORTS.get(self.system)
        host = (url.host or "").lower() + (f":{port}" if url.host and port else "")
        return {"system": self.system, "host": host, "database": url.database or "", **query}

    def _failure(self, error: sa.exc.DBAPIError, connecting: bool = False) -> CdcError:
        original = error.orig
        state, number = error_codes(original)
        words = _first_line(original or error)
        found = f"{state or number or ''} {words}".strip()
        if UNTRUSTED.search(found):
            authority = "`sslrootcert`" if self.options.driver in POSTGRES else '`"ssl": {"ca": …}`'
            return untrusted(self.location, self.info.connection_id, found, authority)
        of_client = not isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
        meaning = meaning_of(self.system, state, number, words, of_client and not error.connection_invalidated)
        if meaning.kind is ErrorClass.PERMISSION:
            do = f"grant SELECT on the tables to {self.info.login}, or correct connection {self.info.connection_id}"
            return server_errors.missing_privilege(self.location, found, do)
        failure = server_errors.server_failed(self.location, found, meaning)
        lost = connecting or error.connection_invalidated
        return SourceUnreachable(*failure.problems) if lost and isinstance(failure, SourceUnavailable) else failure


def _first_line(error: BaseException) -> str:
    """Further lines of the server's message may quote values."""
    text = str(getattr(getattr(error, "diag", None), "message_primary", None) or error).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__
