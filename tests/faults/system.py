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
from pathlib import Path

import psycopg

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import (
    Definition,
    OnDelete,
    Reconcile,
    Resync,
    Source,
    Staging,
    TableRule,
)
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.state.store import StateStore
from tests.faults.checker.checker import Checker
from tests.faults.checker.commits import SHARD
from tests.faults.checker.database import PollingReader
from tests.faults.checker.ledger import Shape
from tests.faults.checker.wal import forget, watch
from tests.faults.servers import Servers
from tests.faults.targets import TARGETS
from tests.faults.writer import SHAPES, SHARED_SHAPES, Writer, later

KEPT = timedelta(hours=1)
LOCKED_S = 2


class SystemUnderTest:
    """``target`` is the type of the target; ``definition`` may be changed between runs."""

    def __init__(self, name: str, folder: Path, target: str, servers: Servers, seed: int) -> None:
        self.name = name
        self.folder = folder
        self.kind = target
        self.server = server = servers.postgres
        self.target = TARGETS[target](name, folder, servers)
        self.dsn = server.dsn(name)
        self.shared = self.target.shared
        self.writer = Writer(self.dsn, seed, SHARED_SHAPES if self.shared else SHAPES)
        self.rules = tuple(map(rule_of, self.writer.first))
        self.later = 0
        self.password = server.password
        self.secrets = self.target.secrets(self._source())
        targets = self.target.definitions()
        self.definition = Definition(
            name=name,
            source=Source("postgres", "source", Reconcile.AUTO, {"publication": f"cdc_{name}"}),
            target=targets[0] if len(targets) == 1 else None,
            targets=targets if len(targets) > 1 else (),
            tables=self.rules,
            staging=Staging(str(folder / "staging"), retain=KEPT),
            resync=Resync(max_delete=1.0),
        )
        self.checker = Checker(
            name, self.dsn, f"cdc_{name}", folder, self.writer.ledger, self.target.readers(), self.canaries
        )

    @property
    def state_url(self) -> str:
        return f"sqlite:///{self.folder}/state.db"

    @property
    def canaries(self) -> list[str]:
        return [self.password, *self.target.canaries]

    def replicator(self) -> Replicator:
        return open_replicator(self.definition, self.secrets, StateStore(self.state_url))

    def add_table(self) -> Shape:
        """Adds a table without a copy; it replaces the last such table."""
        self.later += 1
        shape = later(self.later, self.shared)
        self.writer.add(shape)
        self.checker.forget(later(self.later - 1, self.shared).table)
        self.definition = replace(self.definition, tables=(*self.rules, rule_of(shape)))
        self._update_readers()
        return shape

    def drop_table(self, shape: Shape) -> None:
        """The source drops a table that was added; the copy is to go with it."""
        self.writer.drop(shape)
        self.checker.forget(shape.table)
        rule = replace(rule_of(shape), dropped_tables=OnDroppedTable.DROP)
        self.definition = replace(self.definition, tables=(*self.rules, rule))
        self._update_readers()

    def keep(self, retain: timedelta) -> None:
        self.definition = replace(self.definition, staging=replace(self.definition.staging, retain=retain))

    def use(self, engine: EngineMode) -> None:
        self.definition = replace(self.definition, spark=replace(self.definition.spark, engine=engine))

    def limit_mutations(self, most: int | None) -> None:
        """Of a transaction in Spanner. None: as by default."""
        target = self.target.definition()
        options = target.options if most is None else {**target.options, "max_mutations": most}
        self.definition = replace(self.definition, target=replace(target, options=options))

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    def is_locked(self) -> bool:
        """Whether a process holds the lock on the catalog, which is one file."""
        if "iceberg" not in self.kind:
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

    def _update_readers(self) -> None:
        for name, reader in self.checker.readers.items():
            if isinstance(reader, PollingReader):
                reader.shapes = [shape for shape in self.checker.copies if shape.at == name]

    @contextlib.contextmanager
    def running(self) -> Iterator[SystemUnderTest]:
        """Creates the databases and runs the writer and the readers."""
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}".encode())
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            watch(connection, self.name)
        self.writer.fill()
        tables = ", ".join(shape.table for shape in self.writer.first)
        self.execute(f"CREATE PUBLICATION cdc_{self.name} FOR TABLE {tables}")
        self._update_readers()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.target.created())
            for reader in self.checker.readers.values():
                if isinstance(reader, PollingReader):
                    stack.enter_context(reader)
            try:
                with self.writer:
                    yield self
            finally:
                self._remove()

    def _remove(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            forget(connection, self.name)
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            slots = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
            for (slot,) in connection.execute(slots, [self.name]).fetchall():
                query = "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE slot_name = %s"
                connection.execute(query, [slot])
                with contextlib.suppress(psycopg.errors.UndefinedObject):  # a temporary one is dropped with its session
                    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)".encode())


def rule_of(shape: Shape) -> TableRule:
    on_delete = OnDelete.SOFT if shape.soft else OnDelete.HARD
    return TableRule(shape.table, shape.target, on_delete=on_delete, shard_column=SHARD if shape.shared else "")


def new_name() -> str:
    return f"w{secrets.token_hex(4)}"
