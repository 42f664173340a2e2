"""Database engines whose transactions are safe for compare-and-set."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.pool import NullPool

from airflow_cdc_provider.core.connections import postgres_settings
from airflow_cdc_provider.core.errors import CheckFailed

BUSY_TIMEOUT_S = 30
DATABASES = ("sqlite", "postgresql")
"""The databases that are tested: locks, clocks and transaction isolation differ between databases."""


def open_engine(url: str) -> Engine:
    """An engine without idle connections. SQLite: write-ahead log, a busy timeout, and transactions that take the write
    lock at their start, so that no other transaction changes what they read. PostgreSQL: a transaction locks the rows
    that it reads in order to write them, and inherits no setting. Transactions of one connection may have different
    sessions, as behind a pooler. Raises CheckFailed (STA021) for other databases, for a driver that SQLAlchemy
    does not find, and for an invalid URL."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() not in DATABASES:
            raise _unsupported(parsed.get_backend_name())
        engine = _engine(parsed)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise _unsupported(str(error).splitlines()[0]) from error
    if engine.dialect.name == "sqlite" and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return engine


@lru_cache(maxsize=8)
def _engine(url: sa.URL) -> Engine:
    """One per database: an engine compiles each statement once."""
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, poolclass=NullPool, **_OF_SQLITE)
        sa.event.listen(engine, "connect", _prepare)
        sa.event.listen(engine, "begin", _begin)
    else:
        engine = sa.create_engine(url, poolclass=NullPool, **_OF_POSTGRESQL)
        sa.event.listen(engine, "connect", _prepare_postgresql)
        sa.event.listen(engine, "begin", _begin_postgresql)
    return engine


_OF_SQLITE: dict[str, Any] = {"connect_args": {"timeout": BUSY_TIMEOUT_S}}
_OF_POSTGRESQL: dict[str, Any] = {
    "connect_args": {"prepare_threshold": None},
    "isolation_level": "READ COMMITTED",
}
"""A prepared statement would be of a session that a pooler gives to another client."""

SETTINGS = {name: value for name, value in postgres_settings.SETTINGS.items() if name != "search_path"}
"""The tables of the store are where the connection looks for them."""


def _unsupported(found: str) -> CheckFailed:
    return CheckFailed.of(
        "STA021",
        "this database is not supported for the state store",
        where="connection cdc_state",
        found=found,
        allowed=", ".join(DATABASES),
        do="airflow connections delete cdc_state, then: "
        "airflow connections add cdc_state --conn-uri postgresql://USER@HOST/DATABASE",
        data="nothing was read or written",
    )


def _prepare(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare_postgresql(connection: Any, _record: Any) -> None:
    """How each transaction begins."""
    connection.read_only = False
    connection.deferrable = False


def _begin_postgresql(connection: sa.Connection) -> None:
    connection.exec_driver_sql(postgres_settings.settings_statement(SETTINGS, of_transaction=True))
