"""What the kits have in common whose targets another client reads, writes and restores by single SQL statements."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pytest

from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.targets.database.names import own_control_table
from spark_jobs.writers import database as writer
from tests.spark.contract.once import once_at


class SqlKit(ABC):
    engine = EngineMode.AUTO
    jars: tuple[str, ...] = ()
    keeps_versions = False
    keeps_cuts = False
    chores: frozenset[str] = frozenset()
    # The last moment before the lock of the table.
    before_commit = "merge.before_submit"
    control = own_control_table("t")
    some_integer = "INT"
    every_row = ""
    upkeep = ""

    @abstractmethod
    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Returns the rows of the last statement."""

    @abstractmethod
    def table(self, name: str) -> str:
        """SQL of a table in the schema of the target."""

    @abstractmethod
    def column(self, name: str) -> str:
        """SQL of a column of the source."""

    def rows(self, *columns: str, table: str = "t") -> list[tuple[Any, ...]]:
        return self.execute(f"SELECT {', '.join(map(self.column, columns))} FROM {self.table(table)}")

    def remove(self, table: str, **key: int | str) -> None:
        wanted = " AND ".join(f"{self.column(name)} = {value!r}" for name, value in key.items())
        self.execute(f"DELETE FROM {self.table(table)} WHERE {wanted}")

    def write(self, statement: str) -> None:
        self.execute(statement.format(t=self.table("t")))

    def compact(self) -> None:
        if self.upkeep:
            self.write(self.upkeep)

    def version(self) -> dict[str, str]:
        """A backup of rows and cursors: the tables, and the names of their copies."""
        saved = {self.table(name): self.table(f"b{uuid.uuid4().hex}") for name in ("t", self.control)}
        self.execute(*(f"CREATE TABLE {copy} AS SELECT * FROM {table}" for table, copy in saved.items()))
        return saved

    def restore(self, version: dict[str, str]) -> None:
        for table, copy in version.items():
            self.execute(f"DELETE FROM {table}{self.every_row}", f"INSERT INTO {table} SELECT * FROM {copy}")

    def drop(self) -> None:
        self.write("DROP TABLE {t}")

    def create(self) -> None:
        self.write(f"CREATE TABLE {{t}} (id {self.some_integer})")

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        monkeypatch.setattr(writer, "failpoint", once_at(self.before_commit, action))
