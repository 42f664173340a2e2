"""Iceberg in a catalog of a folder, read by pyiceberg, written by another session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, spark_settings
from spark_jobs.writers import iceberg
from tests.spark.contract.once import lost_once, once_at
from tests.spark.contract.sessions import small_session

TABLE = "lake.cdc.t"


class IcebergKit:
    engine = EngineMode.AUTO
    kind = "iceberg"
    jars = ("iceberg",)
    keeps_versions = True
    keeps_cuts = True
    chores = frozenset({"compact", "expire"})
    has_odd_numbers = keeps_zeros_apart = True
    before_commit = "merge.before_commit"
    catalog: type[Catalog] = SqlCatalog

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder / "lake"
        self.target = Target("iceberg", str(self.folder))
        self.secrets = Secrets()
        self.session = small_session(spark)
        for name, value in spark_settings(catalog_location(self.target, ConnectionInfo())).items():
            self.session.conf.set(name, value)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        with contextlib.closing(SqlCatalog("lake", uri=f"sqlite:///{self.folder}/catalog.db")) as catalog:
            yield catalog.load_table("cdc.t")

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        with self.opened() as table:
            found = table.scan(selected_fields=columns).to_arrow().select(list(columns))
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def write(self, statement: str) -> None:
        self.session.sql(statement.format(t=TABLE))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        with self.opened() as table:
            properties = table.catalog.load_namespace_properties("cdc")
            if "cdc.cut.hand.window" not in properties:
                return None
            snapshot = int(properties["cdc.cut.hand.table.t"])
            found = table.scan(selected_fields=columns, snapshot_id=snapshot).to_arrow().to_pylist()
        return int(properties["cdc.cut.hand.window"]), [tuple(row[name] for name in columns) for row in found]

    def compact(self) -> None:
        self.write("CALL lake.system.rewrite_data_files(table => 'cdc.t', options => map('rewrite-all', 'true'))")

    def version(self) -> int:
        with self.opened() as table:
            return int(table.current_snapshot().snapshot_id)

    def restore(self, version: int) -> None:
        self.write(f"CALL lake.system.rollback_to_snapshot('cdc.t', {version})")

    def drop(self) -> None:
        self.write("DROP TABLE {t}")

    def create(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.write("CREATE NAMESPACE IF NOT EXISTS lake.cdc")
        self.write("CREATE TABLE {t} (id INT) USING iceberg")

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        monkeypatch.setattr(iceberg, "failpoint", once_at(self.before_commit, action))

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        def as_lost() -> None:
            raise OSError("connection reset")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.catalog, "commit_table", lost_once(self.catalog.commit_table, reply, as_lost))
            yield
