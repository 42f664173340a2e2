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
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import PUBLISHED
from airflow_cdc_provider.targets.snowflake import session
from tests.buckets import Moto
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session
from tests.spark.contract.sql_kit import SqlKit

DATABASE = "COPIES"


class SnowflakeKit(SqlKit):
    kind = "snowflake"
    has_odd_numbers = keeps_zeros_apart = False

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
        info = self.server.connection
        with snowflake.connector.connect(user=info.login, password="any", port=info.port, **info.extra) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]

    def table(self, name: str) -> str:
        return f"{DATABASE}.{self.schema}.{quoted(name)}"

    def column(self, name: str) -> str:
        return quoted(name)

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        wanted = f"{quoted('replicator')} = 'hand' AND {quoted('valid')} = 1"
        published = self.execute(f"SELECT {quoted('cut_window')} FROM {self.table(PUBLISHED)} WHERE {wanted}")
        return (int(published[0][0]), self.rows(*columns)) if published else None

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        """The client repeats the request until it gives up."""

        def arm() -> None:
            requests.post(f"http://127.0.0.1:{self.server.port}/lose/{'answer' if reply else 'request'}", timeout=10)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "NETWORK_LIMIT_S", 2)
            patch.setattr(commits, "failpoint", once_at("merge.before_commit", arm))
            yield


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
