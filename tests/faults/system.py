"""The system under test: a replicator with its source, its target and its writer, without Airflow.

Many faults are injected into one system, so that each meets the history of the earlier ones.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import (
    Definition,
    OnDelete,
    Reconcile,
    Resync,
    Source,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.spanner import INSTANCE, EmbeddedSpanner
from airflow_cdc_provider.state.store import StateStore
from tests.faults.checker.checker import Checker, Reader
from tests.faults.checker.database import DatabaseReader, Server
from tests.faults.checker.delta import DeltaReader
from tests.faults.checker.iceberg import IcebergReader
from tests.faults.checker.ledger import Shape
from tests.faults.checker.spanner import SpannerReader
from tests.faults.checker.wal import forget, watch
from tests.faults.writer import ACCOUNTS, EVENTS, SCHEMA, Writer, later
from tests.spanner_client import open_database

RULES = (
    TableRule(ACCOUNTS.table, ACCOUNTS.target),
    TableRule(EVENTS.table, EVENTS.target),
)
KEPT = timedelta(hours=1)
LOCKED_S = 2


class SystemUnderTest:
    """``target`` is the type of the target; ``definition`` may be changed between runs."""

    def __init__(
        self, name: str, folder: Path, target: str, server: EmbeddedPostgres, mariadb: EmbeddedMariaDB | None, seed: int
    ) -> None:
        self.name = name
        self.folder = folder
        self.kind = target
        self.server = server
        self.mariadb = mariadb
        self.spanner = EmbeddedSpanner() if target == "spanner" else None
        self.dsn = server.dsn(name)
        self.writer = Writer(self.dsn, seed)
        self.later = 0
        self.password = server.password
        self.secrets = Secrets(source=self._source(), target=self._target())
        lake = {"location": str(folder / "lake")} if target in ("delta", "iceberg") else {}
        self.definition = Definition(
            name=name,
            source=Source("postgres", "source", Reconcile.AUTO, {"publication": f"cdc_{name}"}),
            target=Target(target, **lake, options={} if lake else self._options),  # type: ignore[arg-type]
            tables=RULES,
            staging=Staging(str(folder / "staging"), retain=KEPT),
            resync=Resync(max_delete=1.0),
        )
        self.checker = Checker(name, self.dsn, f"cdc_{name}", folder, self.writer.ledger, self._reader(), self.canaries)

    @property
    def schema(self) -> str:
        return f"copy_{self.name}"

    @property
    def _options(self) -> dict[str, Any]:
        return {"instance": INSTANCE, "database": self.name} if self.spanner else {"schema": self.schema}

    @property
    def state_url(self) -> str:
        return f"sqlite:///{self.folder}/state.db"

    @property
    def canaries(self) -> list[str]:
        return [self.password, *([self.mariadb.password] if self.mariadb else [])]

    def replicator(self) -> Replicator:
        return open_replicator(self.definition, self.secrets, StateStore(self.state_url))

    def add_table(self) -> Shape:
        """Adds a table without a copy; it replaces the last such table."""
        self.later += 1
        shape = later(self.later)
        self.writer.add(shape)
        self.checker.histories.pop(later(self.later - 1).table, None)
        self.definition = replace(
            self.definition, tables=(*RULES, TableRule(shape.table, shape.target, on_delete=OnDelete.SOFT))
        )
        self._update_reader()
        return shape

    def keep(self, retain: timedelta) -> None:
        self.definition = replace(self.definition, staging=replace(self.definition.staging, retain=retain))

    def use(self, engine: EngineMode) -> None:
        self.definition = replace(self.definition, spark=replace(self.definition.spark, engine=engine))

    def limit_mutations(self, most: int | None) -> None:
        """Of a transaction in Spanner. None: as by default."""
        options = self._options | ({} if most is None else {"max_mutations": most})
        self.definition = replace(self.definition, target=replace(self.definition.target, options=options))

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    def end_sessions_of(self, pid: int) -> None:
        """Ends sessions of a frozen process that are idle in a transaction, as the server itself does after a
        minute."""
        if self.kind == "postgres":
            with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
                query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"
                connection.execute(query + " AND state = 'idle in transaction'", [f"cdc:{self.name}:%.{pid}"])
        if self.kind == "mysql":
            with pymysql.connect(**self._server().options, autocommit=True) as connection:
                cursor = connection.cursor()
                idle = "SELECT id FROM information_schema.processlist WHERE command = 'Sleep' AND time >= 1"
                cursor.execute(idle)
                for (number,) in cursor.fetchall():
                    cursor.execute(f"KILL {number}")

    def is_locked(self) -> bool:
        """Whether a process holds the lock on the catalog, which is one file."""
        if self.kind != "iceberg":
            return False
        with contextlib.closing(
            sqlite3.connect(self.folder / "lake/catalog.db", LOCKED_S, isolation_level=None)
        ) as catalog:
            try:
                catalog.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                return True
            catalog.execute("ROLLBACK")
        return False

    def _source(self) -> ConnectionInfo:
        server = self.server
        return ConnectionInfo("source", server.host, server.port, server.user, server.password, schema=self.name)

    def _target(self) -> ConnectionInfo:
        if self.kind == "postgres":
            return replace(self._source(), connection_id="warehouse", schema="postgres")
        if self.kind == "mysql":
            server = self.mariadb
            assert server is not None
            return ConnectionInfo(
                "warehouse", server.host, server.port, server.user, server.password, schema=self.schema
            )
        return self.spanner.connection if self.spanner else ConnectionInfo()

    def _server(self) -> Server:
        info = self.secrets.target
        options: dict[str, Any] = {"host": info.host, "port": info.port, "user": info.login, "password": info.password}
        return Server(self.kind, self.schema, options | ({"dbname": "postgres"} if self.kind == "postgres" else {}))

    def _reader(self) -> Reader:
        if self.kind == "delta":
            return DeltaReader(self.folder / "lake")
        if self.kind == "iceberg":
            return IcebergReader(self.folder / "lake")
        if self.spanner:
            return SpannerReader(partial(open_database, self.spanner.port, self.name))
        return DatabaseReader(self._server())

    def _update_reader(self) -> None:
        if isinstance(self.checker.reader, DatabaseReader):
            self.checker.reader.shapes = tuple(self.writer.ledger.shapes.values())

    @contextlib.contextmanager
    def running(self) -> Iterator[SystemUnderTest]:
        """Creates the databases and runs the writer and the readers."""
        with self.spanner or contextlib.nullcontext(), self._databases():
            yield self

    @contextlib.contextmanager
    def _databases(self) -> Iterator[None]:
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}".encode())
            if self.kind == "postgres":
                connection.execute(f"CREATE SCHEMA {self.schema}".encode())
        if self.kind == "mysql":
            self._mysql(f"CREATE SCHEMA {self.schema}")
        self.execute(SCHEMA)
        self.execute(f"CREATE PUBLICATION cdc_{self.name} FOR TABLE accounts, events")
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            watch(connection, self.name)
        self.writer.fill()
        self._update_reader()
        reader = self.checker.reader
        with reader if isinstance(reader, DatabaseReader) else contextlib.nullcontext():
            try:
                with self.writer:
                    yield
            finally:
                self._remove()

    def _remove(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            forget(connection, self.name)
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            slots = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
            for (slot,) in connection.execute(slots, [self.name]).fetchall():
                query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s"
                connection.execute(query, [slot])
                with contextlib.suppress(psycopg.errors.UndefinedObject):  # a temporary one is dropped with its session
                    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)".encode())
            if self.kind == "postgres":
                connection.execute(f"DROP SCHEMA {self.schema} CASCADE".encode())
        if self.kind == "mysql":
            self._mysql(f"DROP SCHEMA {self.schema}")

    def _mysql(self, statement: str) -> None:
        with pymysql.connect(**self._server().options, autocommit=True) as connection:
            connection.cursor().execute(statement)


def new_name() -> str:
    return f"w{secrets.token_hex(4)}"
