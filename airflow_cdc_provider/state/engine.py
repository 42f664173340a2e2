"""From a URL to a database engine whose transactions are safe to compare and set in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.pool import NullPool

from airflow_cdc_provider.core.errors import CheckFailed, Problem

BUSY_TIMEOUT_S = 30
DATABASES = ("sqlite", "postgresql")
"""Those it is tried on: locks, clocks and the isolation of transactions are each database's own."""


def open_engine(url: str) -> Engine:
    """An engine that holds no idle connection. SQLite: write-ahead log, a patient lock, and transactions that take the
    write lock when they begin, so that what was read is still true when it is written. PostgreSQL: whoever writes rows
    after reading them locks them when it reads. Raises CheckFailed (STA021) for any other database, for a driver that
    SQLAlchemy does not find, and for what is no URL."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() not in DATABASES:
            raise _refused(parsed.get_backend_name())
        sqlite = parsed.get_backend_name() == "sqlite"
        wait = {"timeout": BUSY_TIMEOUT_S} if sqlite else {}
        engine = sa.create_engine(parsed, poolclass=NullPool, connect_args=wait)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise _refused(str(error).splitlines()[0]) from error
    if not sqlite:
        return engine
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _refused(found: str) -> CheckFailed:
    return CheckFailed(
        Problem(
            "STA021",
            "the state store cannot be kept in this database",
            where="connection cdc_state",
            found=found,
            allowed=", ".join(DATABASES),
            do="airflow connections delete cdc_state, then: "
            "airflow connections add cdc_state --conn-uri postgresql://USER@HOST/DATABASE",
            data="nothing was read or written",
        )
    )


def _prepare(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
