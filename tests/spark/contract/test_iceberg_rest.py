"""Iceberg in a REST catalog with an Airflow connection behaves as Iceberg in the catalog of a folder."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, pyiceberg_properties, spark_settings
from tests.spark.contract.iceberg_kit import IcebergKit
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.rest_catalog import rest_catalog
from tests.spark.contract.sessions import small_session

pytestmark = pytest.mark.jvm

SECRET = "s3cr3t-of-the-catalog"
COLUMNS = (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT)))


class RestKit(IcebergKit):
    def __init__(self, spark: SparkSession, url: str) -> None:
        self.target = Target("iceberg", connection="rest", catalog="lake.cdc")
        self.connection = ConnectionInfo("rest", url, login="cdc", password=SECRET)
        self.secrets = Secrets(target=self.connection)
        self.session = small_session(spark)
        for name, value in spark_settings(catalog_location(self.target, self.connection)).items():
            self.session.conf.set(name, value)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        with contextlib.closing(
            RestCatalog("lake", **pyiceberg_properties(catalog_location(self.target, self.connection)))
        ) as catalog:
            yield catalog.load_table("cdc.t")


@pytest.fixture
def kit(spark: SparkSession, tmp_path: Path) -> Iterator[RestKit]:
    (tmp_path / "warehouse").mkdir()
    with rest_catalog(tmp_path / "warehouse", SECRET) as url:
        yield RestKit(spark, url)


def test_copies_merges_fences_rollbacks_and_upkeep_work_in_a_rest_catalog(
    kit: RestKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = KitTable(kit, tmp_path, TableSchema("public.t", COLUMNS, ("id",)))
    table.copy([{"id": 1, "v": "a"}])
    copied = kit.version()
    assert table.apply([table.update({"id": 1, "v": "b"}), table.insert({"id": 2, "v": "c"})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "b"), (2, "c")]

    table.land([table.delete({"id": 2})])
    staged, _ = table.staged()

    def fence() -> None:
        current = table.target_state()
        assert current.control is not None
        record = current.control.fenced(State(TableState.REPLICATING, "2026-01-01T00:00:00Z"))
        table.job(StepKind.STAGE, ()).tables.fence("t", current, record)

    with monkeypatch.context() as patch:
        kit.meanwhile(patch, fence)
        assert table.merged(staged).outcome is Outcome.FENCED
    assert table.rows() == [(1, "b"), (2, "c")]

    with monkeypatch.context() as patch:
        kit.meanwhile(patch, kit.compact)
        assert table.merged(table.staged()[0]).outcome is Outcome.DONE
    assert table.rows() == [(1, "b")]

    kit.restore(copied)
    assert table.target_state().restored
    fence()
    assert table.merged(table.staged()[0]).outcome is Outcome.DONE
    assert table.rows() == [(1, "b")]

    table.copy([{"id": 7, "v": "new"}])
    assert table.rows() == [(7, "new")]


def test_an_error_of_the_credential_names_the_catalog_and_not_the_credential(kit: RestKit, tmp_path: Path) -> None:
    wrong = dataclasses.replace(kit.connection, password="wrong-key")
    kit.secrets = Secrets(target=wrong)
    table = KitTable(kit, tmp_path, TableSchema("public.t", COLUMNS, ("id",)))
    with pytest.raises(TargetUnavailable, match="TGT010") as caught:
        table.target_state()
    assert "wrong-key" not in str(caught.value)
