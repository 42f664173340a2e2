"""Redshift's stand-in, read and written by PostgreSQL's own client behind it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.sandbox.redshift import USER, EmbeddedRedshift
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import PUBLISHED, own_control_table
from spark_jobs.writers import database as writer
from tests.buckets import Moto
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session


class RedshiftKit:
    engine = EngineMode.AUTO
    kind = "redshift"
    jars: tuple[str, ...] = ()
    keeps_versions = False
    chores: frozenset[str] = frozenset()
    has_odd_numbers = False
    before_commit = "merge.before_submit"

    def __init__(self, spark: SparkSession, server: EmbeddedRedshift, store: Moto, schema: str) -> None:
        self.server, self.schema = server, schema
        options = {"schema": schema, "stage": f"s3://{store.LAKE}/{schema}", "stage_connection": "objects"}
        self.target = Target("redshift", connection="warehouse", options=options)
        self.secrets = Secrets(target=server.connection, stage=store.connection)
        self.session = small_session(spark)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Returns the rows of the last statement."""
        with psycopg.connect(self.server.postgres.dsn(), autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            return list(cursor.fetchall()) if cursor.description else []

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        names = ", ".join(f'"{name}"' for name in columns)
        return self.execute(f"SELECT {names} FROM {self._t}")

    def write(self, statement: str) -> None:
        self.execute(statement.format(t=self._t))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        view = f"{self.schema}.{PUBLISHED}"
        with psycopg.connect(self.server.postgres.dsn()) as connection:
            query = f"SELECT cut_window FROM {view} WHERE replicator = 'hand' AND valid = 1"
            published = connection.execute(query.encode()).fetchone()
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {self._t}".encode()).fetchall()
        return (int(published[0]), rows) if published else None

    def compact(self) -> None:
        self.write("VACUUM {t}")

    def version(self) -> dict[str, str]:
        """A backup of rows and cursors: the tables, and the names of their copies."""
        saved = {table: f"{self.schema}.b{uuid.uuid4().hex}" for table in (self._t, self._control)}
        self.execute(*(f"CREATE TABLE {copy} AS SELECT * FROM {table}" for table, copy in saved.items()))
        return saved

    def restore(self, version: dict[str, str]) -> None:
        for table, copy in version.items():
            self.execute(f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM {copy}")

    def drop(self) -> None:
        self.write("DROP TABLE {t}")

    def create(self) -> None:
        self.write("CREATE TABLE {t} (id INT)")

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        monkeypatch.setattr(writer, "failpoint", once_at(self.before_commit, action))

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            lost = f"lose {'answer' if reply else 'request'}"
            patch.setattr(commits, "failpoint", once_at("merge.before_commit", lambda: self.arm(lost)))
            yield

    def arm(self, statement: str) -> None:
        """For the next COMMIT of any session of the stand-in."""
        info = self.server.connection
        dsn = f"postgresql://{info.login}:{info.password}@{info.host}:{info.port}/{info.schema}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    @property
    def _t(self) -> str:
        return f"{self.schema}.t"

    @property
    def _control(self) -> str:
        return f"{self.schema}.{own_control_table('t')}"


@contextlib.contextmanager
def redshift_kit(spark: SparkSession, _: Path, fixture: Callable[[str], Any]) -> Iterator[RedshiftKit]:
    kit = RedshiftKit(spark, fixture("redshift_server"), fixture("warehouse_store"), f"k{uuid.uuid4().hex}")
    kit.execute(f"CREATE SCHEMA {kit.schema} AUTHORIZATION {USER}")
    yield kit
    kit.execute(f"DROP SCHEMA {kit.schema} CASCADE")
