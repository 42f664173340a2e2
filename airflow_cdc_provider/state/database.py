"""Transactions in the database of the state store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from airflow_cdc_provider.core.errors import StateUnavailable
from airflow_cdc_provider.state import tables
from airflow_cdc_provider.state.engine import open_engine


class Database:
    """Opens on first use, and creates or upgrades its tables."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine: sa.Engine | None = None

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self.transaction() as connection:
            return connection.execute(query).all()

    def changes_row(self, statement: sa.Update | sa.Delete) -> bool:
        """Execute the statement. Whether it found its row."""
        with self.transaction() as connection:
            return connection.execute(statement).rowcount == 1

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        try:
            if self._engine is None:
                engine = open_engine(self.url)
                with engine.begin() as connection:
                    tables.upgrade(connection)
                self._engine = engine
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise  # a key that is in use: the database works
        except (DBAPIError, OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            raise StateUnavailable.of(
                "STA010",
                "the state store cannot be used",
                where=sa.engine.make_url(self.url).render_as_string(hide_password=True),
                found=str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0][:200],
                do="restore the database; a damaged SQLite file can be removed and rebuilt with "
                "`airflow cdc state rebuild`",
                data="source, change log and target tables are unchanged",
            ) from error


def now(connection: Connection) -> float:
    """Seconds since 1970, by the clock that all clients of this database share."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def insert(connection: Connection, into: sa.Table, /, **values: Any) -> bool:
    """Insert a row. False if a row with this key exists."""
    try:
        with connection.begin_nested():
            connection.execute(into.insert().values(**values))
    except IntegrityError:
        return False
    return True
