"""Sessions with a MySQL or MariaDB server, opened the same way for source and target."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_access import mysql_tls
from airflow_cdc_provider.core.connections.mysql_errors import MISSING_PRIVILEGE
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import CdcError

DEFAULT_PORT = 3306
CONNECT_LIMIT_S = 10
LOGIN_REJECTED = frozenset({1045, 1049, 1698})


class SessionErrors(Protocol):
    """What a failed connection is to a source, or to a target."""

    def login_rejected(self, where: str, found: str, connection_id: str) -> CdcError: ...

    def unreachable(self, where: str, found: str) -> CdcError: ...


def server_address(connection: ConnectionInfo) -> str:
    """Server and login, for error messages."""
    return f"{connection.host}:{connection.port or DEFAULT_PORT} as {connection.login}"


@contextmanager
def open_session(
    pymysql: Any,
    connection: ConnectionInfo,
    errors: SessionErrors,
    **parameters: Any,
) -> Iterator[Any]:
    """Raises what ``errors`` makes of a failed connection; other errors are those of the library."""
    tls = mysql_tls(connection)
    context = tls.context() if tls else None
    try:
        session = pymysql.connect(
            host=connection.host,
            port=connection.port or DEFAULT_PORT,
            user=connection.login,
            password=connection.password,
            charset="utf8mb4",
            connect_timeout=CONNECT_LIMIT_S,
            ssl=context,
            ssl_disabled=context is None,
            defer_connect=True,
            **parameters,
        )
        if context is None:
            session.ssl, session.ctx = True, _unverified()
        session.connect()
    except pymysql.OperationalError as error:
        where, text = server_address(connection), code_and_message(error)
        if UNTRUSTED.search(text):
            raise untrusted(where, connection.connection_id, text, '`"ssl": {"ca": …}`') from error
        if error_code(error) in LOGIN_REJECTED | MISSING_PRIVILEGE:
            raise errors.login_rejected(where, text, connection.connection_id) from error
        raise errors.unreachable(where, text) from error
    try:
        yield session
    finally:
        if session.open:
            session.close()


@cache
def _unverified() -> ssl.SSLContext:
    """For TLS if the server has it, as by the library's default, which reads all authorities of the host for each
    session."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def error_code(error: Any) -> int:
    """0 if the server has sent none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def code_and_message(error: Any) -> str:
    return f"{error_code(error)}: {error.args[1] if len(error.args) > 1 else type(error).__name__}"
