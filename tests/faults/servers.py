"""The servers of targets. Each starts when a system needs it, and runs until the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.bigquery import EmbeddedBigQuery
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.redshift import EmbeddedRedshift
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.sandbox.spanner import EmbeddedSpanner
from tests.buckets import Moto

T = TypeVar("T")


class Servers:
    """``postgres``: that of the sources, which runs already."""

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        self.postgres = postgres
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def can_start(self, target: str) -> bool:
        """In CI every server must be installed."""
        started: dict[str, Callable[[], object]] = {
            "bigquery": lambda: self.bigquery,
            "mysql": lambda: self.mariadb,
            "redshift": lambda: self.redshift,
            "shards in mysql": lambda: self.mariadb,
            "snowflake": lambda: self.snowflake,
            "spanner": lambda: self.spanner,
        }
        try:
            started.get(target, lambda: None)()
        except NotInstalled as error:
            if os.environ.get("CI"):
                raise
            print(f"skipped: {error}", flush=True)
            return False
        return True

    @cached_property
    def bigquery(self) -> EmbeddedBigQuery:
        return self._started(EmbeddedBigQuery())

    @cached_property
    def mariadb(self) -> EmbeddedMariaDB:
        return self._started(EmbeddedMariaDB())

    @cached_property
    def redshift(self) -> EmbeddedRedshift:
        return self._started(EmbeddedRedshift(self.store.connection))

    @cached_property
    def snowflake(self) -> EmbeddedSnowflake:
        return self._started(EmbeddedSnowflake())

    @cached_property
    def spanner(self) -> EmbeddedSpanner:
        return self._started(EmbeddedSpanner())

    @cached_property
    def store(self) -> Moto:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="cdc-store-"))
        return self._started(Moto(Path(folder) / "moto.log"))

    def _started(self, server: AbstractContextManager[T]) -> T:
        return self._stack.enter_context(server)
