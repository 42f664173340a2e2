"""Snowflake's stand-in, read and written by Snowflake's own client."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import snowflake.connector
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import PUBLISHED, own_control_table
from airflow_cdc_provider.targets.snowflake import session
from spark_jobs.writers import database as writer
from tests.buckets import Moto
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session

DATABASE = "COPIES"


class SnowflakeKit:
    engine = EngineMode.AUTO
    kind = "snowflake"
    jars: tuple[str, ...] = ()
    keeps_versions = False
    keeps_cuts = False
    chores: frozenset[str] = frozenset()
    has_odd_numbers = False
    before_commit = "merge.before_submit"

    def __init__(self, spark: SparkSession, server: EmbeddedSnowflake, schema: str, store: Moto | None = None) -> None:
        """``store``: has the external stage."""
        self.server, self.schema = server, schema
        options = {"database": DATABASE, "schema": schema}
        if store:
            options |= {"stage": f"s3://{store.LAKE}/{schema}", "stage_name": "LOADS", "stage_connection": "objects"}
        self.target = Target("snowflake", connection="warehouse", options=options)
        stage = store.connection if store else ConnectionInfo()
        self.secrets = Secrets(target=server.connection, stage=stage)
        self.session = small_session(spark)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Returns the rows of the last statement."""
        info = self.server.connection
        with snowflake.connector.connect(user=info.login, password="any", port=info.port, **info.extra) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return self.execute(f"SELECT {', '.join(quoted(name) for name in columns)} FROM {self._t}")

    def write(self, statement: str) -> None:
        self.execute(statement.format(t=self._t))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        view = f"{DATABASE}.{self.schema}.{quoted(PUBLISHED)}"
        query = (
            f"SELECT {quoted('cut_window')} FROM {view} WHERE {quoted('replicator')} = 'hand' AND {quoted('valid')} = 1"
        )
        published = self.execute(query)
        return (int(published[0][0]), self.rows(*columns)) if published else None

    def compact(self) -> None:
        """Snowflake has no such command."""

    def version(self) -> dict[str, str]:
        """A backup of rows and cursors: the tables, and the names of their copies."""
        saved = {table: f"{DATABASE}.{self.schema}.B{uuid.uuid4().hex}" for table in (self._t, self._control)}
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
        """The client repeats the request until it gives up."""

        def arm() -> None:
            requests.post(f"http://127.0.0.1:{self.server.port}/lose/{'answer' if reply else 'request'}", timeout=10)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "NETWORK_LIMIT_S", 2)
            patch.setattr(commits, "failpoint", once_at("merge.before_commit", arm))
            yield

    @property
    def _t(self) -> str:
        return f"{DATABASE}.{self.schema}.T"

    @property
    def _control(self) -> str:
        return f"{DATABASE}.{self.schema}.{quoted(own_control_table('t'))}"


def quoted(name: str) -> str:
    """As the target names it."""
    return '"' + name.upper().replace('"', '""') + '"'


@contextlib.contextmanager
def snowflake_kit(spark: SparkSession, _: Path, fixture: Callable[[str], Any]) -> Iterator[SnowflakeKit]:
    yield created(SnowflakeKit(spark, fixture("snowflake_server"), f"K{uuid.uuid4().hex.upper()}"))


@contextlib.contextmanager
def external_stage_kit(spark: SparkSession, _: Path, fixture: Callable[[str], Any]) -> Iterator[SnowflakeKit]:
    """The stage is made by an administrator."""
    schema, store = f"K{uuid.uuid4().hex.upper()}", fixture("warehouse_store")
    kit = created(SnowflakeKit(spark, fixture("snowflake_server"), schema, store))
    kit.execute(f"CREATE STAGE {DATABASE}.{schema}.LOADS URL = '{kit.target.options['stage']}'")
    yield kit


def created(kit: SnowflakeKit) -> SnowflakeKit:
    kit.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}", f"CREATE SCHEMA {DATABASE}.{kit.schema}")
    return kit
