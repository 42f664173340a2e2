"""BigQuery's stand-in, read and written by Google's own client."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.bigquery import PROJECT, EmbeddedBigQuery
from airflow_cdc_provider.targets.bigquery.names import column_name
from airflow_cdc_provider.targets.database import commits
from airflow_cdc_provider.targets.database.names import PUBLISHED
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session
from tests.spark.contract.sql_kit import SqlKit


class BigQueryKit(SqlKit):
    kind = "bigquery"
    has_odd_numbers = True
    # DuckDB, which the stand-in uses, groups what a subquery refers to, and its zeros are equal.
    keeps_zeros_apart = False
    some_integer = "INT64"
    every_row = " WHERE TRUE"

    def __init__(self, spark: SparkSession, server: EmbeddedBigQuery, dataset: str) -> None:
        self.server, self.dataset = server, dataset
        options = {"project": PROJECT, "dataset": dataset}
        self.target = Target("bigquery", connection="google_cloud", options=options)
        self.secrets = Secrets(target=server.connection)
        self.session = small_session(spark)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        with client(self.server) as connection:
            for statement in statements:
                found = [tuple(row.values()) for row in connection.query(statement).result()]
        return found

    def table(self, name: str) -> str:
        return f"`{PROJECT}.{self.dataset}.{name}`"

    def column(self, name: str) -> str:
        return f"`{column_name(name)}`"

    def write(self, statement: str) -> None:
        super().write(conditional(statement))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        view = self.table(PUBLISHED)
        published = self.execute(f"SELECT cut_window FROM {view} WHERE replicator = 'hand' AND valid = 1")
        return (int(published[0][0]), self.rows(*columns)) if published else None

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        """The client repeats the request, with the id of its job."""

        def arm() -> None:
            requests.post(f"{self.server.url}/lose/{'answer' if reply else 'request'}", timeout=10)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commits, "failpoint", once_at("merge.before_commit", arm))
            yield
        assert requests.get(f"{self.server.url}/lost", timeout=10).json() == {"lost": ""}


def conditional(statement: str) -> str:
    """BigQuery requires a condition."""
    changes = statement.split()[0] in ("UPDATE", "DELETE")
    return f"{statement} WHERE TRUE" if changes and " WHERE " not in statement else statement


@contextlib.contextmanager
def client(server: EmbeddedBigQuery) -> Iterator[bigquery.Client]:
    made = bigquery.Client(
        PROJECT,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": server.url},  # type: ignore[no-untyped-call]
    )
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def bigquery_kit(spark: SparkSession, _: Path, fixture: Callable[[str], Any]) -> Iterator[BigQueryKit]:
    server: EmbeddedBigQuery = fixture("bigquery_server")
    kit = BigQueryKit(spark, server, f"k{uuid.uuid4().hex}")
    kit.execute(f"CREATE SCHEMA `{PROJECT}.{kit.dataset}`")
    yield kit
