"""MariaDB with its binlog."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar

import pymysql

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Reconcile, Source
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.programs.source import BAD_TIME, Column, Table
from tests.programs.worlds.sql import SqlWorld

NUMBERS = count(1)
ZERO_TIME = "0000-00-00 00:00:00"


class MariaDBWorld(SqlWorld):
    quote = "`"
    types: ClassVar[dict[str, str]] = {
        "intkey": "int", "textkey": "varchar(50) COLLATE utf8mb4_nopad_bin", "int": "int", "long": "bigint",
        "text": "varchar(200)", "short": "varchar(50)", "time": "datetime",
    }  # fmt: skip
    loses_log = True

    def __init__(self, server: EmbeddedMariaDB, reconcile: str) -> None:
        self.server, self.reconcile = server, Reconcile(reconcile)
        self.database = f"program{next(NUMBERS)}"
        self.session = pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
        )
        self.execute(
            "SET sql_mode = ''",
            f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            f"USE {self.database}",
        )
        self.connection = ConnectionInfo("db", server.host, server.port, server.user, server.password)

    @property
    def source(self) -> Source:
        return Source("mysql", "source", self.reconcile, {"databases": (self.database,)})

    def table_name(self, name: str) -> str:
        return f"{self.database}.{name}"

    def execute(self, *statements: str) -> None:
        with self.session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def literal(self, value: Any) -> str:
        return str(self.session.escape(ZERO_TIME if value == BAD_TIME else value))

    def retype(self, table: Table, column: Column) -> None:
        self.execute(f"ALTER TABLE {table.name} MODIFY `{column.name}` {self.types[column.kind]}")

    def lose_log(self) -> None:
        self.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        with self.session.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            (file, *_) = cursor.fetchone()  # type: ignore[misc]
            cursor.execute(f"PURGE BINARY LOGS TO '{file}'")

    def close(self) -> None:
        self.execute(f"DROP DATABASE {self.database}")
        self.session.close()
