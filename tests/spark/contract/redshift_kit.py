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
from airflow_cdc_provider.sandbox.redshift import USER, EmbeddedRedshift
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import PUBLISHED
from tests.buckets import Moto
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session
from tests.spark.contract.sql_kit import SqlKit


class RedshiftKit(SqlKit):
    kind = "redshift"
    has_odd_numbers = keeps_zeros_apart = False
    upkeep = "VACUUM {t}"

    def __init__(self, spark: SparkSession, server: EmbeddedRedshift, store: Moto, schema: str) -> None:
        self.server, self.schema = server, schema
        options = {"schema": schema, "stage": f"s3://{store.LAKE}/{schema}", "stage_connection": "objects"}
        self.target = Target("redshift", connection="warehouse", options=options)
        self.secrets = Secrets(target=server.connection, stage=store.connection)
        self.session = small_session(spark)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.postgres.dsn(), autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            return list(cursor.fetchall()) if cursor.description else []

    def table(self, name: str) -> str:
        return f"{self.schema}.{name}"

    def column(self, name: str) -> str:
        """In the lower case in which the target stores names."""
        stored = "".join(letter.lower() if letter.isascii() else letter for letter in name)
        return '"' + stored.replace('"', '""') + '"'

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        view = self.table(PUBLISHED)
        with psycopg.connect(self.server.postgres.dsn()) as connection:
            query = f"SELECT cut_window FROM {view} WHERE replicator = 'hand' AND valid = 1"
            published = connection.execute(query.encode()).fetchone()
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {self.table('t')}".encode()).fetchall()
        return (int(published[0]), rows) if published else None

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


@contextlib.contextmanager
def redshift_kit(spark: SparkSession, _: Path, fixture: Callable[[str], Any]) -> Iterator[RedshiftKit]:
    kit = RedshiftKit(spark, fixture("redshift_server"), fixture("warehouse_store"), f"k{uuid.uuid4().hex}")
    kit.execute(f"CREATE SCHEMA {kit.schema} AUTHORIZATION {USER}")
    yield kit
    kit.execute(f"DROP SCHEMA {kit.schema} CASCADE")


@contextlib.contextmanager
def snapshot_kit(spark: SparkSession, folder: Path, fixture: Callable[[str], Any]) -> Iterator[RedshiftKit]:
    """With the isolation level SNAPSHOT, the default of new clusters and workgroups."""
    with redshift_kit(spark, folder, fixture) as kit:
        kit.execute("ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'")
        try:
            yield kit
        finally:
            kit.execute("ALTER DATABASE postgres RESET default_transaction_isolation")
