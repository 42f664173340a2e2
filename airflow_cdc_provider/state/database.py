"""Transactions in the database of the state store."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from airflow_cdc_provider.core.errors import StateUnavailable
from airflow_cdc_provider.state import tables
from airflow_cdc_provider.state.engine import open_engine

T = TypeVar("T")

CONFLICTS = frozenset({"40001", "40P01"})
"""PostgreSQL's codes of serialization failures and deadlocks."""

TRIES = 5
PAUSE_S = 0.1


class Conflict(StateUnavailable):
    """The database has ended the transaction because of another one."""


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
            conflict = isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") in CONFLICTS
            raise (self._conflict if conflict else self._unavailable)(error) from error

    def _unavailable(self, error: Exception) -> StateUnavailable:
        return StateUnavailable.of(
            "STA010",
            "the state store cannot be used",
            where=self._where,
            found=_text(error),
            do="restore the database; a damaged SQLite file can be removed and rebuilt with "
            "`airflow cdc state rebuild`",
            data="source, change log and target tables are unchanged",
        )

    def _conflict(self, error: Exception) -> Conflict:
        return Conflict.of(
            "STA010",
            "the state store cannot be used",
            where=self._where,
            found=_text(error),
            do="nothing: the next try repeats it; if it lasts, end long transactions in the database",
            data="source, change log and target tables are unchanged",
        )

    @property
    def _where(self) -> str:
        return sa.engine.make_url(self.url).render_as_string(hide_password=True)


def _text(error: Exception) -> str:
    return str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0][:200]


def repeats_conflicts(cls: type[T]) -> type[T]:
    """Each public method of the class, which is one transaction or may be repeated as a whole, is repeated where the
    database has ended a transaction because of another one, or another one has taken its key."""
    for name, member in list(vars(cls).items()):
        if isfunction(member) and not name.startswith("_"):
            setattr(cls, name, _repeated(member))
    return cls


def _repeated(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def repeat(*args: Any, **kwargs: Any) -> Any:
        for number in range(1, TRIES):
            try:
                return method(*args, **kwargs)
            except (Conflict, IntegrityError):
                time.sleep(random.uniform(0, PAUSE_S * number))
        return method(*args, **kwargs)

    return repeat


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
