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
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import CONTROL, PUBLISHED
from spark_jobs.writers import database as writer
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session
from tests.spark.databases import Database, new_schema
from tests.spark.lossy_proxy import Lose, LossyProxy

SERVERS = {"mysql": "mariadb", "postgres": "postgres"}
"""Fixtures of the session."""


class DatabaseKit:
    engine = EngineMode.AUTO
    keeps_versions = False
    keeps_cuts = False
    chores: frozenset[str] = frozenset()
    # The table is locked from the first statement of the commit on.
    before_commit = "merge.before_submit"

    def __init__(self, spark: SparkSession, database: Database, proxy: LossyProxy) -> None:
        self.database = database
        self.proxy = proxy
        self.kind = database.kind
        self.has_odd_numbers = database.kind == "postgres"
        self.jars = (database.kind,)
        self.target = database.target
        self.secrets = Secrets(target=replace(database, port=proxy.port).connection)
        self.session = small_session(spark)

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        mark = '"' if self.kind == "postgres" else "`"
        return self.database.execute(f"SELECT {', '.join(f'{mark}{name}{mark}' for name in columns)} FROM {self._t}")

    def write(self, statement: str) -> None:
        self.database.execute(statement.format(t=self._t))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
        if self.kind == "mysql":
            begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        view = f"{self.database.schema}.{PUBLISHED}"
        with self.database.session() as cursor:
            cursor.execute(begin)
            cursor.execute(f"SELECT cut_window FROM {view} WHERE replicator = 'hand' AND valid = 1")
            published = cursor.fetchone()
            cursor.execute(f"SELECT {', '.join(columns)} FROM {self._t}")
            rows = list(cursor.fetchall())
            cursor.execute("COMMIT")
        return (published[0], rows) if published else None

    def compact(self) -> None:
        self.write("VACUUM FULL {t}" if self.kind == "postgres" else "OPTIMIZE TABLE {t}")

    def version(self) -> dict[str, str]:
        """A backup of rows and cursors: the tables, and the names of their copies."""
        saved = {table: f"{self.database.schema}.b{uuid.uuid4().hex}" for table in (self._t, self._control)}
        self.database.execute(*(f"CREATE TABLE {copy} AS SELECT * FROM {table}" for table, copy in saved.items()))
        return saved

    def restore(self, version: dict[str, str]) -> None:
        for table, copy in version.items():
            self.database.execute(f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM {copy}")

    def drop(self) -> None:
        self.write("DROP TABLE {t}")

    def create(self) -> None:
        self.write("CREATE TABLE {t} (id INT)")

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        monkeypatch.setattr(writer, "failpoint", once_at(self.before_commit, action))

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        def arm() -> None:
            self.proxy.lose = Lose.ANSWER if reply else Lose.REQUEST

        before = self.proxy.lost
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commits, "failpoint", once_at("merge.before_commit", arm))
            yield
        assert self.proxy.lost == before + 1

    @property
    def _t(self) -> str:
        return f"{self.database.schema}.t"

    @property
    def _control(self) -> str:
        return f"{self.database.schema}.{CONTROL}"


@contextlib.contextmanager
def database_kit(kind: str, spark: SparkSession, folder: Path, fixture: Callable[[str], Any]) -> Iterator[DatabaseKit]:
    """``folder`` is for kits whose tables are files."""
    schema = f"k{uuid.uuid4().hex}"
    with new_schema(kind, fixture(SERVERS[kind]), schema) as database, LossyProxy(database.port) as proxy:
        yield DatabaseKit(spark, database, proxy)
