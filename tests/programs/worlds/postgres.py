"""PostgreSQL with a publication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
TARGETS = "postgres"
"""The database of the targets."""
INHERITABLE = (
    "TimeZone TO 'Asia/Kathmandu'", "DateStyle TO 'German, DMY'", "IntervalStyle TO 'sql_standard'",
    "extra_float_digits TO -10", "bytea_output TO 'escape'", "standard_conforming_strings TO off",
    "statement_timeout TO 200", "lock_timeout TO 200", "transaction_timeout TO 200",
    "idle_in_transaction_session_timeout TO 200", "idle_session_timeout TO 200", "default_transaction_read_only TO on",
    "default_transaction_isolation TO serializable", "default_transaction_deferrable TO on", "search_path TO ''",
    "client_encoding TO 'LATIN1'", "row_security TO off",
    "array_nulls TO off", "quote_all_identifiers TO on", "transform_null_equals TO on", "backslash_quote TO on",
)  # fmt: skip
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active"


class PostgresWorld(SqlWorld):
    quote = '"'
    types: ClassVar[dict[str, str]] = {
        "intkey": "int", "textkey": "text", "int": "int", "long": "bigint", "text": "text", "short": "varchar(50)",
        "time": "timestamptz",
    }  # fmt: skip
    settings = ("deletes", "root", "rows", "identity")
    inheritable = INHERITABLE
    loses_log = True
    renames_tables = True
    has_ids = True

    def __init__(self, server: EmbeddedPostgres, reconcile: str) -> None:
        super().__init__()
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

    def begin(self, tables: list[Table], whole_rows: bool) -> None:
        self.tables = tables
        self.identity = "FULL" if whole_rows else "DEFAULT"
        self.set("identity", on=True)
        self.execute(f"CREATE PUBLICATION cdc FOR TABLE {', '.join(one.called for one in tables)}")

    def announce(self, table: Table) -> None:
        self.execute(
            f"ALTER TABLE {table.called} REPLICA IDENTITY {self.identity}",
            f"ALTER PUBLICATION cdc ADD TABLE {table.called}",
        )

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(statement.encode())

    def transaction(self) -> AbstractContextManager[Any]:
        return self.session.transaction()

    @contextmanager
    def inheriting(self) -> Iterator[None]:
        settings = [INHERITABLE[number] for number in sorted(self.inherited)]
        for database in (self.database, TARGETS):
            self.execute(*(f"ALTER DATABASE {database} SET {setting}" for setting in settings))
        try:
            yield
        finally:
            for database in (self.database, TARGETS) if settings else ():
                self.execute(f"ALTER DATABASE {database} RESET ALL")

    def literal(self, value: Any) -> str:
        return sql.Literal(value).as_string(self.session)

    def retype(self, table: Table, column: Column) -> None:
        self.execute(f'ALTER TABLE {table.called} ALTER COLUMN "{column.name}" TYPE {self.types[column.kind]}')

    def set(self, setting: str, on: bool) -> None:
        match setting:
            case "deletes":
                operations = "insert, update, delete, truncate" if on else "insert, update, truncate"
                self.execute(f"ALTER PUBLICATION cdc SET (publish = '{operations}')")
            case "root":
                self.execute(f"ALTER PUBLICATION cdc SET (publish_via_partition_root = {str(on).lower()})")
            case "identity":
                identity = self.identity if on else "DEFAULT"
                self.execute(*(f"ALTER TABLE {one.called} REPLICA IDENTITY {identity}" for one in self.tables))
            case _:
                filtered = [f"{one.called}{'' if on else ' WHERE (id IS NULL)'}" for one in self.tables]
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
