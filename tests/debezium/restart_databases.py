"""Two databases with two small tables, for connectors that lose their offsets."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pymysql
from pymysql.cursors import DictCursor

from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium.connection_settings import connection_settings

DATABASE = "shop"
TABLES = (
    "CREATE TABLE sig (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
    "CREATE TABLE t (id int PRIMARY KEY, name varchar(10))",
    "CREATE TABLE emptied (id int PRIMARY KEY, name varchar(10))",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO emptied VALUES (1, 'a')",
)


class Postgres:
    prefix, schema = "pgr", "public"

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server
        with psycopg.connect(server.dsn(), autocommit=True) as session:
            session.execute(f"CREATE DATABASE {DATABASE}")
        self.do(*TABLES)

    def do(self, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(DATABASE), autocommit=True) as session:
            for statement in statements:
                session.execute(statement)

    def rows(self, table: str) -> dict[int, str]:
        with psycopg.connect(self.server.dsn(DATABASE)) as session:
            return dict(session.execute(f"SELECT id, name FROM {table}").fetchall())

    def connector(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "slot.name": self.prefix,
            "publication.name": self.prefix,
            "database.dbname": DATABASE,
            **_common(self),
        }


class MariaDB:
    prefix, schema = "myr", DATABASE

    def __init__(self, server: EmbeddedMariaDB, history: str) -> None:
        self.server, self.history = server, history
        with self._session() as session, session.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
        self.do(*TABLES)

    def do(self, *statements: str) -> None:
        with self._session(database=DATABASE) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, table: str) -> dict[int, str]:
        with self._session(database=DATABASE) as session, session.cursor() as cursor:
            cursor.execute(f"SELECT id, name FROM {table}")
            return dict(cursor.fetchall())

    def all_rows(self, table: str) -> list[dict[str, Any]]:
        with self._session(database=DATABASE, cursorclass=DictCursor) as session, session.cursor() as cursor:
            cursor.execute(f"SELECT * FROM `{table}`")
            return list(cursor.fetchall())

    def connector(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.server.id": "4713",
            "database.include.list": DATABASE,
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": self.history,
            **_common(self),
        }

    def _session(self, **more: Any) -> pymysql.Connection[Any]:
        server = self.server
        return pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True, **more
        )


Database = Postgres | MariaDB


def request_snapshot(database: Database, number: int, kind: str) -> None:
    """An ad hoc snapshot of ``t``, requested by a row in the signal table."""
    signal = json.dumps({"type": kind, "data-collections": [f"{database.schema}.t"]})
    database.do(f"INSERT INTO sig VALUES ('ask{number}', 'execute-snapshot', '{signal}')")


def _common(database: Database) -> dict[str, str]:
    return {
        "topic.prefix": database.prefix,
        **connection_settings(database.server),
        "signal.data.collection": f"{database.schema}.sig",
        "topic.creation.default.partitions": "2",
    }
