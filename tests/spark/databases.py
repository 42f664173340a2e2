"""Schemas on both kinds of database, and their content as seen by another client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql
from psycopg.types.string import TextLoader
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import OnDelete, Target
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.scripted_table import ScriptedTable


@dataclass(frozen=True)
class Database:
    """One schema on one server."""

    kind: str
    server: EmbeddedPostgres | EmbeddedMariaDB
    schema: str
    port: int

    @property
    def target(self) -> Target:
        return Target(self.kind, connection="warehouse", options={"schema": self.schema})

    @property
    def connection(self) -> ConnectionInfo:
        name = "postgres" if self.kind == "postgres" else self.schema
        return ConnectionInfo(
            "warehouse", self.server.host, self.port, self.server.user, self.server.password, schema=name
        )

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A connection that commits each statement."""
        server = self.server
        if isinstance(server, EmbeddedPostgres):
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                connection.adapters.register_loader("json", TextLoader)
                yield connection.cursor()
        else:
            options = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
            with pymysql.connect(**options, autocommit=True) as connection:  # type: ignore[arg-type]
                yield connection.cursor()

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Returns the rows of the last statement."""
        with self.session() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def rows(self, columns: Sequence[str], table: str = "t") -> list[tuple[Any, ...]]:
        found = self.execute(f"SELECT {', '.join(columns)} FROM {self.schema}.{table}")
        return sorted(found, key=lambda row: [(value is None, str(value)) for value in row])

    def tables(self) -> list[str]:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = '{}'"
        return sorted(str(name) for (name,) in self.execute(query.format(self.schema)))

    def table(
        self, spark: SparkSession, folder: Path, schema: TableSchema, on_delete: OnDelete = OnDelete.HARD
    ) -> ScriptedTable:
        return ScriptedTable(
            spark, folder, schema, on_delete, target=self.target, secrets=Secrets(target=self.connection)
        )


def ignore_case(database: Database, table: str, column: str) -> None:
    """Give a text column another collation, as a user of the database may. The embedded PostgreSQL has no ICU, without
    which no collation ignores anything: only its catalog says that this one does."""
    table = f"{database.schema}.{table}"
    if database.kind == "postgres":
        name = f'"{database.schema}".ignoring'
        database.execute(
            f'CREATE COLLATION {name} FROM "C"',
            f"ALTER TABLE {table} ALTER COLUMN {column} TYPE text COLLATE {name}",
            f"UPDATE pg_collation SET collisdeterministic = false WHERE oid = '{name}'::regcollation",
        )
    else:
        database.execute(f"ALTER TABLE {table} MODIFY {column} varchar(255) COLLATE utf8mb4_general_ci NOT NULL")


@contextmanager
def new_schema(kind: str, server: EmbeddedPostgres | EmbeddedMariaDB, name: str) -> Iterator[Database]:
    database = Database(kind, server, name, server.port)
    database.execute(f"CREATE SCHEMA {name}")
    try:
        yield database
    finally:
        database.execute(f"DROP SCHEMA {name}{' CASCADE' if kind == 'postgres' else ''}")
