"""Iceberg in a REST catalog with an Airflow connection behaves as Iceberg in the catalog of a folder."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.storage.locations import ABFSS, FOLDER, GS, S3
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from tests.buckets import RunningStores
from tests.rest_catalog import rest_catalog
from tests.spark.contract.iceberg_rest_kit import SECRET, RestKit
from tests.spark.contract.kit_table import KitTable
from tests.warehouses import bucket_warehouse, connection_credentials

pytestmark = [pytest.mark.jvm, pytest.mark.server]

COLUMNS = (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT)))
CATALOG, CONNECTION = "from the catalog", "from the connection"
WAREHOUSES = [
    (S3, CATALOG),
    pytest.param((FOLDER, CATALOG), marks=pytest.mark.nightly),
    pytest.param((S3, CONNECTION), marks=pytest.mark.nightly),
    pytest.param((GS, CATALOG), marks=pytest.mark.nightly),
    pytest.param((GS, CONNECTION), marks=pytest.mark.nightly),
    pytest.param((ABFSS, CATALOG), marks=pytest.mark.nightly),
    pytest.param((ABFSS, CONNECTION), marks=pytest.mark.nightly),
]
"""Where the tables are, and where the credentials of the store come from."""


@pytest.fixture(params=WAREHOUSES, ids=str)
def kit(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, object_stores: RunningStores
) -> Iterator[RestKit]:
    storage, credentials = request.param
    (tmp_path / "warehouse").mkdir()
    if storage == FOLDER:
        with rest_catalog(tmp_path / "warehouse", SECRET) as url:
            yield RestKit(spark, url, FOLDER)
        return
    objects, path = object_stores[storage], f"iceberg/{uuid.uuid4().hex}"
    warehouse = bucket_warehouse(objects, path, vended=credentials == CATALOG)
    extra = connection_credentials(objects) if credentials == CONNECTION else {}
    with rest_catalog(tmp_path / "warehouse", SECRET, warehouse) as url:
        yield RestKit(spark, url, storage, extra)


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
    with kit.opened() as current:
        paths = [task.file.file_path for task in current.scan().plan_files()]
    assert paths and {urlsplit(path).scheme or FOLDER for path in paths} == {kit.storage}


@pytest.mark.parametrize("kit", [(FOLDER, CATALOG)], indirect=True)
def test_an_error_of_the_credential_names_the_catalog_and_not_the_credential(kit: RestKit, tmp_path: Path) -> None:
    wrong = dataclasses.replace(kit.connection, password="wrong-key")
    kit.secrets = Secrets(target=wrong)
    table = KitTable(kit, tmp_path, TableSchema("public.t", COLUMNS, ("id",)))
    with pytest.raises(TargetUnavailable, match="TGT010") as caught:
        table.target_state()
    assert "wrong-key" not in str(caught.value)
