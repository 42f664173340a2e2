"""A database behind a proxy that can lose a COMMIT or its answer, read and written by the vendor's own client."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import CONTROL, PUBLISHED
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session
from tests.spark.contract.sql_kit import SqlKit
from tests.spark.databases import Database, new_schema
from tests.spark.lossy_proxy import Lose, LossyProxy

SERVERS = {"mysql": "mariadb", "postgres": "postgres"}
"""Fixtures of the session."""


class DatabaseKit(SqlKit):
    control = CONTROL

    def __init__(self, spark: SparkSession, database: Database, proxy: LossyProxy) -> None:
        self.database = database
        self.proxy = proxy
        self.kind = database.kind
        self.has_odd_numbers = self.keeps_zeros_apart = database.kind == "postgres"
        self.jars = (database.kind,)
        self.upkeep = "VACUUM FULL {t}" if self.kind == "postgres" else "OPTIMIZE TABLE {t}"
        self.target = database.target
        self.secrets = Secrets(target=replace(database, port=proxy.port).connection)
        self.session = small_session(spark)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.database.execute(*statements)

    def table(self, name: str) -> str:
        return f"{self.database.schema}.{name}"

    def column(self, name: str) -> str:
        mark = '"' if self.kind == "postgres" else "`"
        return mark + name.replace(mark, 2 * mark) + mark

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
        if self.kind == "mysql":
            begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        view = self.table(PUBLISHED)
        with self.database.session() as cursor:
            cursor.execute(begin)
            cursor.execute(f"SELECT cut_window FROM {view} WHERE replicator = 'hand' AND valid = 1")
            published = cursor.fetchone()
            cursor.execute(f"SELECT {', '.join(columns)} FROM {self.table('t')}")
            rows = list(cursor.fetchall())
            cursor.execute("COMMIT")
        return (published[0], rows) if published else None

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        def arm() -> None:
            self.proxy.lose = Lose.ANSWER if reply else Lose.REQUEST

        before = self.proxy.lost
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commits, "failpoint", once_at("merge.before_commit", arm))
            yield
        assert self.proxy.lost == before + 1


@contextlib.contextmanager
def database_kit(kind: str, spark: SparkSession, folder: Path, fixture: Callable[[str], Any]) -> Iterator[DatabaseKit]:
    """``folder`` is for kits whose tables are files."""
    schema = f"k{uuid.uuid4().hex}"
    with new_schema(kind, fixture(SERVERS[kind]), schema) as database, LossyProxy(database.port) as proxy:
        yield DatabaseKit(spark, database, proxy)
