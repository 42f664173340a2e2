"""MariaDB with its binlog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
WRITER = {"image": ("binlog_row_image", "FULL", "MINIMAL"), "statements": ("binlog_format", "ROW", "STATEMENT")}
"""Settings of the sessions of writers: name, and the values with which the replicator is right and is not."""
IGNORED = "binlog-ignore-db"
INHERITABLE = (
    ("sql_mode", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,EMPTY_STRING_IS_NULL"), ("time_zone", "-05:00"),
    ("sql_select_limit", 1), ("max_statement_time", 0.2), ("group_concat_max_len", 4), ("autocommit", 0),
    ("tx_read_only", 1), ("wait_timeout", 1), ("net_write_timeout", 1), ("lock_wait_timeout", 1),
    ("div_precision_increment", 0), ("max_join_size", 1), ("idle_transaction_timeout", 1),
    ("tx_isolation", "READ-UNCOMMITTED"), ("lc_time_names", "de_DE"), ("max_sort_length", 8), ("completion_type", 2),
    ("old_mode", "ZERO_DATE_TIME_CAST"),
)  # fmt: skip


class MariaDBWorld(SqlWorld):
    quote = "`"
    types: ClassVar[dict[str, str]] = {
        "intkey": "int", "textkey": "varchar(50) COLLATE utf8mb4_nopad_bin", "int": "int", "long": "bigint",
        "text": "varchar(200)", "short": "varchar(50)", "time": "timestamp NULL",
    }  # fmt: skip
    loses_log = True
    renames_tables = True
    logs_equal_rows = False
    settings = (*WRITER, "filter")
    shown_by_runs = ("filter",)
    inheritable = INHERITABLE

    def __init__(self, server: EmbeddedMariaDB, reconcile: str) -> None:
        super().__init__()
        self.server, self.reconcile = server, Reconcile(reconcile)
        self.database = f"program{next(NUMBERS)}"
        self.writer: dict[str, str] = {}
        self.session = self._connected()
        self.execute(
            f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", f"USE {self.database}"
        )
        self.connection = ConnectionInfo("db", server.host, server.port, server.user, server.password)

    @property
    def source(self) -> Source:
        return Source("mysql", "source", self.reconcile, {"databases": (self.database,)})

    def _connected(self) -> Any:
        server = self.server
        session = pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
        )
        with session.cursor() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            for name, value in self.writer.items():
                cursor.execute(f"SET SESSION {name} = {value}")
        return session

    def table_name(self, name: str) -> str:
        return f"{self.database}.{name}"

    def execute(self, *statements: str) -> None:
        with self.session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN")
        yield
        self.execute("COMMIT")

    @contextmanager
    def inheriting(self) -> Iterator[None]:
        settings = [INHERITABLE[number] for number in sorted(self.inherited)]
        with self.session.cursor() as cursor:
            before = {name: self._global(cursor, name) for name, _ in settings}
        try:
            self._set_globals(dict(settings))
            yield
        finally:
            self._set_globals(before)

    def _global(self, cursor: Any, name: str) -> Any:
        cursor.execute(f"SELECT @@GLOBAL.{name}")
        return cursor.fetchone()[0]

    def _set_globals(self, values: Mapping[str, Any]) -> None:
        self.execute(*(f"SET GLOBAL {name} = {self.session.escape(value)}" for name, value in values.items()))

    def set(self, setting: str, on: bool) -> None:
        if setting == "filter":
            self._filter(on)
            return
        name, right, other = WRITER[setting]
        self.writer[name] = right if on else other
        self.execute(f"SET SESSION {name} = {self.writer[name]}")

    def _filter(self, on: bool) -> None:
        """The server starts again, with or without a filter that leaves the database out of the binlog."""
        self.session.close()
        self.server.stop()
        self.server.settings.pop(IGNORED, None)
        if not on:
            self.server.settings[IGNORED] = self.database
        self.server.start()
        self.session = self._connected()
        self.execute(f"USE {self.database}")

    def literal(self, value: Any) -> str:
        return str(self.session.escape(ZERO_TIME if value == BAD_TIME else value))

    def retype(self, table: Table, column: Column) -> None:
        self.execute(f"ALTER TABLE {table.called} MODIFY `{column.name}` {self.types[column.kind]}")

    def lose_log(self) -> None:
        self.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        with self.session.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            (file, *_) = cursor.fetchone()  # type: ignore[misc]
            cursor.execute(f"PURGE BINARY LOGS TO '{file}'")

    def close(self) -> None:
        if IGNORED in self.server.settings:
            self._filter(on=True)
        self.execute(f"DROP DATABASE {self.database}")
        self.session.close()
