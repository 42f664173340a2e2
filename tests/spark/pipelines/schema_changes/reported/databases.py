"""PostgreSQL by its log and by polls, and MariaDB by its binlog."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import psycopg
import pymysql

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.pipelines.schema_changes.reported.changing_source import Case, ChangingSource, Rows, texts
from tests.spark.pipelines.schema_changes.statements import alter

DATABASE = "reported"
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"
LAX, STRICT = "SET sql_mode = ''", "SET sql_mode = DEFAULT"
MAKE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a int NOT NULL, k int NOT NULL, v varchar(20))",
    "INSERT INTO {t} (id, a, k, v) VALUES (1, 10, 1, 'v1'), (2, 20, 2, 'v2'), (3, 30, 3, 'v3')",
)
UPDATE, INSERT = "UPDATE {t} SET a = a + 1 WHERE id = 1", "INSERT INTO {t} (id, a, k) VALUES (4, 40, 4)"
POSTGRES = {
    TableChange.ADD_COLUMN: alter("ADD z int"),
    TableChange.FILLED_COLUMN: alter("ADD z int DEFAULT 5"),
    TableChange.DROP_COLUMN: alter("DROP v"),
    TableChange.REPLACE_COLUMN: alter("DROP v", "ADD v varchar(20)"),
    TableChange.RENAME_COLUMN: alter("RENAME v TO v2"),
    TableChange.WIDEN: alter("ALTER a TYPE bigint"),
    TableChange.NARROW: alter("ALTER a TYPE smallint"),
    TableChange.REWRITE: alter("ALTER a TYPE int USING a + 1"),
    TableChange.CHANGE_KEY: alter("DROP CONSTRAINT {t}_pkey, ADD PRIMARY KEY (k)"),
    TableChange.TRUNCATE: ("TRUNCATE {t}",),
    TableChange.RENAME_TABLE: alter("RENAME TO {t}_new"),
}
MARIADB = POSTGRES | {
    TableChange.RENAME_COLUMN: alter("RENAME COLUMN v TO v2"),
    TableChange.WIDEN: alter("MODIFY a bigint NOT NULL"),
    TableChange.NARROW: alter("MODIFY a smallint NOT NULL"),
    TableChange.REWRITE: (LAX, *alter("MODIFY v varchar(1)"), STRICT),
    TableChange.CHANGE_KEY: alter("DROP PRIMARY KEY, ADD PRIMARY KEY (k)"),
}
POLLED_MAKE = (MAKE[0].replace(" v ", " updated_at timestamptz NOT NULL DEFAULT clock_timestamp(), v "), MAKE[1])
POLLED_UPDATE = UPDATE.replace("SET", "SET updated_at = clock_timestamp(),")


class ChangingDatabase(ChangingSource):
    """``execute``: a statement; ``fetch``: names and rows of a query."""

    statements: ClassVar[Mapping[TableChange, tuple[str, ...]]]
    make: ClassVar[tuple[str, ...]] = MAKE
    update: ClassVar[str] = UPDATE
    schema: ClassVar[str]

    def __init__(self, info: ConnectionInfo, execute: Callable[[str], Any], fetch: Callable[[str], Any]) -> None:
        self.info = info
        self.execute = execute
        self.fetch = fetch

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.info)

    def name(self, case: Case) -> str:
        return f"{self.schema}.{case}"

    def create(self, case: Case) -> None:
        for statement in self.make:
            self.execute(statement.replace("{t}", str(case)))

    def change(self, case: Case) -> None:
        for statement in (self.update, *self.statements[case.change]):
            self.execute(statement.replace("{t}", str(case)))
        self.execute(INSERT.replace("{t}", self._name_now(case)))

    def truth(self, case: Case) -> Rows:
        names, rows = self.fetch(f"SELECT * FROM {self._name_now(case)}")
        return texts({row[names.index("id")]: dict(zip(names, row, strict=True)) for row in rows})

    def _name_now(self, case: Case) -> str:
        return f"{case}_new" if case.change is TableChange.RENAME_TABLE else str(case)


class ChangingPostgres(ChangingDatabase):
    statements = POSTGRES
    schema = "public"

    @property
    def source(self) -> Source:
        return Source("postgres", "source", options={"publication": "cdc"})


class PolledPostgres(ChangingPostgres):
    make, update = POLLED_MAKE, POLLED_UPDATE

    @property
    def source(self) -> Source:
        latencies = {"commit_latency": 0.5, "timestamp_latency": 1.0}
        columns = {"driver": "postgresql+psycopg", "timestamp_column": "updated_at", "schemas": ("public",)}
        return Source("jdbc_poll", "source", options={**latencies, **columns})

    def truth(self, case: Case) -> Rows:
        """Times have another text in the copy."""
        return {
            key: {name: value for name, value in row.items() if name != "updated_at"}
            for key, row in super().truth(case).items()
        }

    def before_run(self) -> None:
        """The writes are old enough, and the interval before has left the overlap."""
        time.sleep(2)


class ChangingMariaDB(ChangingDatabase):
    statements = MARIADB
    schema = DATABASE

    @property
    def source(self) -> Source:
        return Source("mysql", "source", options={"databases": (DATABASE,)})


@contextmanager
def changing_postgres(server: EmbeddedPostgres, kind: type[ChangingPostgres]) -> Iterator[ChangingPostgres]:
    name = f"{DATABASE}_{kind.__name__.lower()}"
    info = ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=name)
    with psycopg.connect(server.dsn(), autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name}")
        try:
            with psycopg.connect(server.dsn(name), autocommit=True) as connection:
                connection.execute("CREATE PUBLICATION cdc FOR ALL TABLES")

                def fetch(query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
                    cursor = connection.execute(query.encode())
                    return [column.name for column in cursor.description or ()], cursor.fetchall()

                yield kind(info, lambda statement: connection.execute(statement.encode()), fetch)
        finally:
            administrator.execute(SLOTS, [name])
            administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def changing_mariadb(server: EmbeddedMariaDB) -> Iterator[ChangingMariaDB]:
    info = ConnectionInfo("db", server.host, server.port, server.user, server.password)
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    with pymysql.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:  # type: ignore[arg-type]

        def fetch(query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
            cursor.execute(query)
            return [column[0] for column in cursor.description], list(cursor.fetchall())

        for statement in (f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}"):
            cursor.execute(statement)
        try:
            yield ChangingMariaDB(info, cursor.execute, fetch)
        finally:
            cursor.execute(f"DROP DATABASE {DATABASE}")
