"""A MariaDB with a binlog, a connector for it, and a plain table that the changes are applied to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pymysql

from airflow_cdc_provider.connectors.source import Boundary, Copy, HoleFound, SourceStatus, SplitRead, StreamItem
from airflow_cdc_provider.connectors.sources.mysql.source import MysqlSource
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.table_tasks import table_task

NUMBERS = itertools.count(1)
Rows = dict[str, dict[str, Any]]


class Shop:
    """One database with a connector for it. ``sql`` runs each statement by itself."""

    def __init__(self, server: EmbeddedMariaDB) -> None:
        self.server = server
        self.name = f"shop{next(NUMBERS)}"
        self.connection = self.connect()
        self.sql(f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4", f"USE {self.name}")
        self.source = self.source_as(server.user, server.password)
        self.position = self.source.open_stream([])

    def source_as(self, login: str, password: str, **options: Any) -> MysqlSource:
        info = ConnectionInfo("db", self.server.host, self.server.port, login, password)
        given = {"databases": [self.name], **options}
        return MysqlSource(Source("mysql", "db", options=given), info, f"r_{self.name}")

    def connect(self, autocommit: bool = True) -> pymysql.Connection[Any]:
        return pymysql.connect(
            host=self.server.host,
            port=self.server.port,
            user=self.server.user,
            password=self.server.password,
            autocommit=autocommit,
            charset="utf8mb4",
        )

    def sql(self, *statements: str) -> None:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def table(self, name: str) -> str:
        return f"{self.name}.{name}"

    def task(self, name: str, held: TableSchema | None = None, **rule: Any) -> TableTask:
        """As a run sees the table now. ``held``: the schema of the target."""
        return table_task(self.source.tables(), self.table(name), held, **rule)

    def status(self, *names: str) -> SourceStatus:
        return self.source.status(self.position, [self.table(name) for name in names])

    def window(self, *tasks: TableTask, limit: Position | None = None) -> list[StreamItem]:
        """From the end of the last window to the present end of the binlog."""
        limit = limit or self.source.status(self.position, [task.table for task in tasks]).limit
        (split,) = self.source.splits(self.position, limit)
        items = list(self.source.read(split, tasks, 1))
        self.position = next((item.position for item in reversed(items) if isinstance(item, Boundary)), limit)
        return items

    def copied(self, task: TableTask, partitions: int = 4) -> tuple[Copy, Rows]:
        """A copy and its rows as canonical values, by key."""
        with self.source.copy(task, 1, self.position, partitions) as copy:
            assert isinstance(copy.read, SplitRead)
            tables = [table for split in copy.read.splits for table in self.source.read_split(split, copy.schema)]
        rows: Rows = {}
        for row in (row for table in tables for row in table.to_pylist()):
            values = {column.name: canonical_value(column.type, row[column.name]) for column in copy.schema.columns}
            key = f"[{','.join(values[name] for name in copy.schema.key)}]"
            assert key not in rows, "a key was copied twice"
            rows[key] = {name: json.loads(text) for name, text in values.items()}
        return copy, rows


def records(items: Sequence[StreamItem]) -> list[ChangeRecord]:
    """The rows and truncates among the items, without schema records."""
    return [item for item in items if isinstance(item, ChangeRecord) and item.op != Operation.SCHEMA]


def holes(items: Sequence[StreamItem]) -> list[tuple[str, str]]:
    return [(item.table, item.detail) for item in items if isinstance(item, HoleFound)]


def fold(rows: Rows, changes: Sequence[ChangeRecord], floor: str = "") -> None:
    """Applies changes to a plain table, in the order of their keys."""
    ordered = sorted((one for one in changes if one.order_key > floor), key=lambda one: one.order_key)
    assert [one.order_key for one in ordered] == [one.order_key for one in changes if one.order_key > floor]
    gone: dict[str | None, dict[str, Any]] = {}
    for one in ordered:
        if one.op == Operation.TRUNCATE:
            rows.clear()
        elif one.op == Operation.DELETE:
            assert one.key_before is not None
            gone[one.link_id] = rows.pop(one.key_before, {})
        else:
            assert one.op in (Operation.INSERT, Operation.UPDATE) and one.key and one.after
            known = json.loads(one.after)
            if not one.after_complete:
                before = gone[one.link_id] if one.link_id else rows[one.key]
                known = {**before, **known}
            rows[one.key] = known
