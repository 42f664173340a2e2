"""The client of the connector, on the files of the simulator instead of a driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_cdc_provider.connectors.sources.sqlserver.client import translated
from airflow_cdc_provider.core.errors import Problem
from tests.simulators.sqlserver import views
from tests.simulators.sqlserver.dialect import add_functions, as_sqlite, fetched

FETCHED_ROWS = 100


class ServerError(Exception):
    """An error with a number, as a driver raises it."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


@dataclass
class SimulatedClient:
    """``before``: called with each query before it runs. ``denied``: texts of queries that the server refuses."""

    folder: Path
    properties: dict[str, Any]
    before: Callable[[str], None] = lambda _query: None
    denied: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return "sim:1433/shop as cdc"

    def tls_warnings(self) -> list[Problem]:
        return []

    @contextmanager
    def session(self, purpose: str, *, snapshot: bool = False) -> Iterator[SimulatedSession]:
        connection = views.connect(self.folder)

        def now() -> str:
            ((text,),) = clock.execute("SELECT now FROM sys.clock_")
            return str(text)

        clock = views.connect(self.folder, ("sys",))
        add_functions(connection, lambda name: self.properties[name], now)
        try:
            yield SimulatedSession(self, connection)
        finally:
            connection.close()
            clock.close()


@dataclass
class SimulatedSession:
    client: SimulatedClient
    connection: sqlite3.Connection

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        self.client.queries.append(query)
        self.client.before(query)
        try:
            if any(text in query for text in self.client.denied):
                raise ServerError(229, "The SELECT permission was denied on an object")
            cursor = self.connection.execute(as_sqlite(query))
            while rows := cursor.fetchmany(FETCHED_ROWS):
                for row in rows:
                    yield tuple(map(fetched, row))
        except ServerError as error:
            raise translated(error, self.client.address) from error
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                raise translated(ServerError(208, f"Invalid object name ({error})"), self.client.address) from error
            raise AssertionError(f"{error}: {query}") from error
