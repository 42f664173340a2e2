"""PostgreSQL with a publication."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar

import psycopg
from psycopg import sql

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Reconcile, Source
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.programs.source import Column, Table
from tests.programs.worlds.sql import SqlWorld

NUMBERS = count(1)
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active"


class PostgresWorld(SqlWorld):
    quote = '"'
    types: ClassVar[dict[str, str]] = {
        "intkey": "int", "textkey": "text", "int": "int", "long": "bigint", "text": "text", "short": "varchar(50)",
        "time": "timestamp",
    }  # fmt: skip
    settings = ("deletes", "root", "rows")
    loses_log = True

    def __init__(self, server: EmbeddedPostgres, reconcile: str) -> None:
        self.server, self.reconcile = server, Reconcile(reconcile)
        self.database = f"program{next(NUMBERS)}"
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.database}".encode())
        self.session = psycopg.connect(server.dsn(self.database), autocommit=True)
        self.connection = ConnectionInfo(
            "db", server.host, server.port, server.user, server.password, schema=self.database
        )

    @property
    def source(self) -> Source:
        return Source("postgres", "source", self.reconcile, {"publication": "cdc"})

    def table_name(self, name: str) -> str:
        return f"public.{name}"

    def begin(self, tables: list[Table], filtered: bool) -> None:
        self.tables = [one.name for one in tables]
        if filtered:
            self.execute(*(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in self.tables))
        self.execute(f"CREATE PUBLICATION cdc FOR TABLE {', '.join(self.tables)}")

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(statement.encode())

    def literal(self, value: Any) -> str:
        return sql.Literal(value).as_string(self.session)

    def retype(self, table: Table, column: Column) -> None:
        self.execute(f'ALTER TABLE {table.name} ALTER COLUMN "{column.name}" TYPE {self.types[column.kind]}')

    def set(self, setting: str, on: bool) -> None:
        match setting:
            case "deletes":
                operations = "insert, update, delete, truncate" if on else "insert, update, truncate"
                self.execute(f"ALTER PUBLICATION cdc SET (publish = '{operations}')")
            case "root":
                self.execute(f"ALTER PUBLICATION cdc SET (publish_via_partition_root = {str(on).lower()})")
            case _:
                filtered = [f"{name}{'' if on else ' WHERE (id IS NULL)'}" for name in self.tables]
                self.execute(f"ALTER PUBLICATION cdc SET TABLE {', '.join(filtered)}")

    def lose_log(self) -> None:
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(SLOTS, [self.database])

    def close(self) -> None:
        self.session.close()
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s", [self.database]
            )
            connection.execute(SLOTS, [self.database])
            connection.execute(f"DROP DATABASE {self.database} WITH (FORCE)".encode())
