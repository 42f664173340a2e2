"""Delta, read by deltalake, written by another session."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.targets.delta.local_engine.commit import PreparedCommit
from spark_jobs.writers import delta, delta_local
from tests.delta_tables import read
from tests.spark.contract.once import lost_once, once_at
from tests.spark.contract.sessions import small_session


class DeltaKit:
    engine = EngineMode.AUTO
    kind = "delta"
    jars = ("delta",)
    keeps_versions = True
    keeps_cuts = True
    chores = frozenset({"purge", "compact", "vacuum"})
    has_odd_numbers = keeps_zeros_apart = True
    before_commit = "merge.before_commit"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.target = Target("delta", str(folder / "lake"))
        self.secrets = Secrets()
        self.session = small_session(spark)
        self.path = folder / "lake" / "t"

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return self._rows(DeltaTable(self.path), columns)

    def write(self, statement: str) -> None:
        self.session.sql(statement.format(t=f"delta.`{self.path}`"))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        newest = sorted(self.path.parent.glob("_cdc_cuts/hand/*.json"))[-1:]
        if not newest:
            return None
        published = json.loads(newest[0].read_text())
        return published["window"], self._rows(DeltaTable(self.path, version=published["tables"]["t"]), columns)

    def compact(self) -> None:
        self.write("ALTER TABLE {t} SET TBLPROPERTIES ('somebody' = 'was here')")
        self.write("OPTIMIZE {t}")

    def version(self) -> int:
        return DeltaTable(self.path).version()

    def restore(self, version: int) -> None:
        self.write(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")

    def drop(self) -> None:
        shutil.rmtree(self.path)

    def create(self) -> None:
        self.write("CREATE TABLE {t} (id INT) USING delta")

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        at_once = once_at(self.before_commit, action)
        for module in (delta, delta_local):
            monkeypatch.setattr(module, "failpoint", at_once)

    def _rows(self, opened: DeltaTable, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in read(opened, *columns).columns), strict=True))

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delta.DeltaWriter, "_try_merge", lost_once(delta.DeltaWriter._try_merge, reply, lambda: None))
            patch.setattr(PreparedCommit, "commit", lost_once(PreparedCommit.commit, reply, broken))
            yield


def broken() -> None:
    raise OSError("the connection broke")
