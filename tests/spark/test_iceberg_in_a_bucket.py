"""Iceberg tables of a REST catalog in the bucket that staging is in: all steps, each in a driver of its own."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, TableResult
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from airflow_cdc_provider.core.storage.locations import S3, parse_location
from tests.buckets import RunningStores
from tests.rest_catalog import rest_catalog
from tests.spark.replicator import Replicator, by_table
from tests.warehouses import bucket_warehouse

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

Database = psycopg.Connection[object]
SECRET = "s3cr3t-of-the-catalog"


def test_every_step_from_snapshot_to_verify_works_with_credentials_of_the_catalog(
    tmp_path: Path, database: Database, connection: ConnectionInfo, object_stores: RunningStores
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 500) n")
    name = f"ice{uuid.uuid4().hex[:8]}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE t")
    objects = object_stores[S3]
    base_url = objects.url(name)
    with rest_catalog(tmp_path, SECRET, bucket_warehouse(objects, f"{name}/warehouse", vended=True)) as url:
        catalog = ConnectionInfo("rest", url, login="cdc", password=SECRET)
        target = Target("iceberg", connection="rest", catalog="lake.shop", options={"storage": S3})
        rules = [TableRule("public.t", on_delete=OnDelete.SOFT)]
        replicator = Replicator(tmp_path, name, connection, rules, base_url, objects.connection, target, catalog)

        def submitted(step: Step) -> TableResult:
            """As the operator does it."""
            process = replicator.submit(step)
            output, _ = process.communicate()
            assert process.returncode == 0, output
            assert not any(secret in output for secret in (objects.secret, SECRET))
            return by_table(replicator.result(step))["public.t"]

        def step(kind: StepKind, **more: Any) -> Step:
            return replicator.step(kind, **more)

        lo = dict(replicator.source.open_stream(["public.t"]))
        copied = submitted(step(StepKind.SNAPSHOT))
        assert (copied.outcome, copied.rows) == (Outcome.DONE, 500)
        database.execute("UPDATE t SET v = 'new' WHERE id <= 100")
        database.execute("DELETE FROM t WHERE id > 480")
        database.execute("ALTER TABLE t ADD COLUMN w int")
        database.execute("UPDATE t SET w = 1 WHERE id = 1")
        limit = dict(replicator.source.status(lo, ["public.t"]).limit)
        assert submitted(step(StepKind.EXTRACT, window=1, lo=lo, limit=limit)).counts["update"] == 101
        staged = step(StepKind.STAGE, window=1)
        assert submitted(staged).outcome is Outcome.DONE
        assert submitted(step(StepKind.MERGE, window=1, merge_of=staged.attempt)).outcome is Outcome.DONE
        verified = submitted(step(StepKind.VERIFY, window=2, lo=replicator.log.manifest(1).hi))
        assert verified.detail["identical"] and verified.detail["target_rows"] == 480, json.dumps(verified.detail)

    keys = " ".join(objects.keys(parse_location(base_url).path))
    assert "/staging/" in keys and "/warehouse/shop/t/data/" in keys and "/warehouse/shop/t/metadata/" in keys
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"catalog.db"}, "nothing else is here"
