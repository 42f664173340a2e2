"""Sessions with a PostgreSQL server, opened the same way for source and target."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.postgres_access import AUTHORITY, libpq_parameters
from airflow_cdc_provider.core.connections.postgres_settings import SETTINGS, settings_statement
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import CdcError

DEFAULT_PORT = 5432
CONNECT_LIMIT_S = 10
KEEPALIVE_S = 60


def server_address(connection: ConnectionInfo) -> str:
    """Server, database and role, for error messages."""
    return f"{connection.host}:{connection.port or DEFAULT_PORT}/{connection.schema} as {connection.login}"


def session_prefix(replicator: str) -> str:
    return f"cdc:{replicator}:"


def application_name(replicator: str, purpose: str) -> str:
    return f"{session_prefix(replicator)}{purpose}@{socket.gethostname()[:20]}.{os.getpid()}"


@contextmanager
def open_session(
    psycopg: Any,
    connection: ConnectionInfo,
    name: str,
    not_connected: Callable[[str], CdcError],
    settings: Mapping[str, str] = SETTINGS,
    **parameters: Any,
) -> Iterator[Any]:
    """A session with autocommit. ``not_connected``: the error for a message of the server or of libpq."""
    parameters = {
        "connect_timeout": CONNECT_LIMIT_S,
        "keepalives_idle": KEEPALIVE_S,
        **libpq_parameters(connection),
        "host": connection.host,
        "port": connection.port or DEFAULT_PORT,
        "dbname": connection.schema,
        "user": connection.login,
        "password": connection.password or None,
        "application_name": name,
        **parameters,
    }
    try:
        session = psycopg.connect(**parameters, autocommit=True)
    except psycopg.OperationalError as error:
        text = first_line(error)
        if UNTRUSTED.search(text):
            where = server_address(connection)
            raise untrusted(where, connection.connection_id, text, f"`{AUTHORITY}`") from error
        raise not_connected(text) from error
    try:
        session.execute(settings_statement(settings))
        yield session
    finally:
        session.close()


def first_line(error: Any) -> str:
    """The server's main message. Its detail line may quote values, so it is left out."""
    text = error.diag.message_primary or str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def is_of_client(psycopg: Any, error: Any) -> bool:
    """Whether the client library itself raised an error, over a connection that may be alive."""
    return not error.sqlstate and not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def state_and_message(psycopg: Any, error: Any) -> str:
    without_state = type(error).__name__ if is_of_client(psycopg, error) else "connection lost"
    return f"{error.sqlstate or without_state}: {first_line(error)}"
