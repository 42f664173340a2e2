"""Database engines whose transactions are safe for compare-and-set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.pool import NullPool

from airflow_cdc_provider.core.errors import CheckFailed

BUSY_TIMEOUT_S = 30
DATABASES = ("sqlite", "postgresql")
"""The databases that are tested: locks, clocks and transaction isolation differ between databases."""


def open_engine(url: str) -> Engine:
    """An engine without idle connections. SQLite: write-ahead log, a busy timeout, and transactions that take the write
    lock at their start, so that no other transaction changes what they read. PostgreSQL: a transaction locks the rows
    that it reads in order to write them. Raises CheckFailed (STA021) for other databases, for a driver that SQLAlchemy
    does not find, and for an invalid URL."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() not in DATABASES:
            raise _unsupported(parsed.get_backend_name())
        sqlite = parsed.get_backend_name() == "sqlite"
        connect_args = {"timeout": BUSY_TIMEOUT_S} if sqlite else {}
        engine = sa.create_engine(parsed, poolclass=NullPool, connect_args=connect_args)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise _unsupported(str(error).splitlines()[0]) from error
    if not sqlite:
        return engine
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


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
