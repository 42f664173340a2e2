"""Embedded servers of the session, and a PostgreSQL database for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from airflow_cdc_provider.connectors.source import Boundary, Copy, StreamItem
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EARLIER, NEWEST, EmbeddedPostgres
from tests.blocks import unpacked
from tests.connectors.table_tasks import table_task
from tests.mariadb import embedded

NUMBERS = itertools.count(1)


class Database:
    """One database with publication ``cdc``, and a connector for it. ``sql`` runs each statement by itself."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server
        self.name = f"db{next(NUMBERS)}"
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}".encode())
        self.connection = self.connect()
        self.replicator = f"r_{self.name}"
        self.source = self.source_as("postgres", server.password)

    def source_as(self, login: str, password: str, **options: str) -> PostgresSource:
        info = ConnectionInfo("db", self.server.host, self.server.port, login, password, self.name)
        return PostgresSource(
            Source("postgres", "db", options={"publication": "cdc", **options}), info, self.replicator
        )

    def connect(self, autocommit: bool = True) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.dsn(self.name), autocommit=autocommit)

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement.encode())

    def ask(self, query: str) -> Any:
        row = self.connection.execute(query.encode()).fetchone()
        return row[0] if row else None

    def publish(self, *tables: str) -> None:
        self.sql(f"CREATE PUBLICATION cdc FOR TABLE {', '.join(tables)} WITH (publish_via_partition_root = true)")

    def now(self) -> Position:
        return {"slot": self.ask("SELECT pg_current_wal_flush_lsn()::text")}

    def task(self, table: str, held: TableSchema | None = None, **rule: Any) -> TableTask:
        """As a run sees the table now. ``held``: the schema of the target."""
        return table_task(self.source.tables(), table, held, replicator=self.replicator, **rule)

    def read(self, lo: Position, *tasks: TableTask, limit: Position | None = None) -> list[StreamItem]:
        (split,) = self.source.splits(lo, limit or self.now())
        return list(unpacked(self.source.read(split, tasks, epoch=1)))

    def copied(self, copy: Copy) -> list[dict[str, Any]]:
        """The rows of all splits."""
        tables = [table for split in copy.read.splits for table in self.source.read_split(split, copy.schema)]
        return [row for table in tables for row in table.to_pylist()]

    def drop(self) -> None:
        """Drops the slot only: the server and its databases end with the session."""
        self.source.drop_stream()
        self.connection.close()


def records(items: Sequence[StreamItem]) -> list[ChangeRecord]:
    """The rows and truncates among the items, without schema records."""
    return [item for item in items if isinstance(item, ChangeRecord) and item.op != "schema"]


def ends(items: Sequence[StreamItem]) -> list[Position]:
    return [item.position for item in items if isinstance(item, Boundary)]


VERSIONS = [pytest.param(NEWEST, id=str(NEWEST))]
VERSIONS += [pytest.param(major, id=str(major), marks=pytest.mark.nightly) for major in EARLIER]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that a version does not support are left out there."""
    lacking = [item for item in items if _lacks(item)]
    config.hook.pytest_deselected(items=lacking)
    items[:] = [item for item in items if item not in lacking]


def _lacks(item: pytest.Item) -> bool:
    since, spec = item.get_closest_marker("since"), getattr(item, "callspec", None)
    return since is not None and spec is not None and spec.params.get("server", NEWEST) < since.args[0]


@pytest.fixture(scope="session", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres({"max_prepared_transactions": "4"}, major=request.param) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[EmbeddedMariaDB]:
    with embedded() as server:
        yield server


@pytest.fixture
def database(server: EmbeddedPostgres) -> Iterator[Database]:
    database = Database(server)
    yield database
    database.drop()
