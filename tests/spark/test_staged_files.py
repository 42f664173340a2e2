"""The reads of staging that need no Spark: step file, row counts and bounds, from a folder and from a bucket."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_cdc_provider.core.connections.connection_info import SECRETS_FILE, ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Step, StepKind
from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.runtime.harness import read_step, take_secrets
from spark_jobs.windows.parquet_files import count_rows
from tests.buckets import KINDS, RunningStores

pytestmark = pytest.mark.server

Where = tuple[str, ConnectionInfo]
ROWS = "batches/public.t/a/rows"


@pytest.fixture(params=["folder", *KINDS])
def where(request: pytest.FixtureRequest, tmp_path: Path, object_stores: RunningStores) -> Where:
    if request.param == "folder":
        return str(tmp_path / "staging"), ConnectionInfo()
    objects = object_stores[request.param]
    return objects.url(uuid.uuid4().hex), objects.connection


@pytest.fixture
def store(where: Where) -> Store:
    """With the files that Spark writes in a folder: parts and marks."""
    store = open_store(*where)
    for number, keys in enumerate(([1, 2, None], [9, 3], [])):
        with store.open_output(f"{ROWS}/part-{number:05d}.snappy.parquet") as file:
            texts = pa.array([f"k{key}" for key in keys], pa.string())
            pq.write_table(pa.table({"id": pa.array(keys, pa.int32()), "t": texts}), file)
    store.write(f"{ROWS}/_SUCCESS", b"")
    return store


def test_rows_are_counted_over_all_parts(store: Store) -> None:
    assert count_rows(store, ROWS) == 5
    assert count_rows(store, "batches/nothing") == 0


def test_bounds_are_read_off_all_parts(store: Store) -> None:
    ranges = key_bounds(store, ROWS, Column("id", LogicalType(Kind.INT32)))
    assert {end for _, low, high in ranges for end in (low, high)} == {f"CAST('{n}' AS INT)" for n in (1, 2, 3, 9)}
    assert key_bounds(store, ROWS, Column("t", LogicalType(Kind.TEXT))) == (("t", "'k1'", "'kNone'"),)


def test_a_driver_reads_its_step_by_the_secrets_it_was_shown_and_these_still_wait_for_it(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, connection = where
    definition = Definition(
        name="shop",
        source=Source("postgres", "db"),
        target=Target("delta", "/lake"),
        tables=(TableRule("a"),),
        staging=Staging(location, "objects"),
    )
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps(to_plain(Secrets(staging=connection))))
    step = Step(StepKind.MERGE, definition, "run", "a", "steps/run/merge/1", str(secrets), "o", "l", 1, {}, ())
    store = open_store(f"{location}/shop", connection)
    store.write(f"{step.folder}/step.json", json.dumps({"format": 1, **to_plain(step)}).encode())
    monkeypatch.setenv(SECRETS_FILE, str(secrets))
    assert read_step(store.url(f"{step.folder}/step.json")) == step
    assert take_secrets(step.secrets_path).staging == connection
    if location.startswith("/"):
        assert read_step(store.url(f"{step.folder}/step.json")) == step
    else:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(StagingUnavailable):
            read_step(store.url(f"{step.folder}/step.json"))
