"""What ``check`` reports about buckets, through the store and through Delta's library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.storage.locations import ABFSS, GS, S3
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import supports_exclusive_create
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from tests.buckets import DEAD, KINDS, ObjectStore, RunningStores
from tests.relay import relay_to

pytestmark = pytest.mark.server

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT64), False),), ("id",))
NO_BUCKET = {S3: "NoSuchBucket", GS: "NoSuchBucket", ABFSS: "ContainerNotFound"}
TASK = TableTask("public.t", "t", SCHEMA, TableRule("public.t"), "", TableState.PENDING)
CONTROL = ControlRecord(
    "shop", "public.known", "l", "o", "a", 1, 1, "f", State(TableState.REPLICATING, "2026-01-01T00:00:00Z"), nonce="n"
)


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


def target(location: str, connection: ConnectionInfo) -> DeltaTarget:
    return DeltaTarget(Target("delta", location), connection, "shop", ChangeLog(LocalStore("/nowhere")))


def check(location: str, connection: ConnectionInfo) -> list[Problem]:
    return target(location, connection).check([TASK])


def test_a_bucket_with_all_required_features_is_no_problem_and_nothing_remains_in_it(objects: ObjectStore) -> None:
    assert check(objects.url("clean"), objects.connection) == []
    assert objects.keys("clean") == []


def test_a_store_that_ignores_conditions_is_reported(objects: ObjectStore) -> None:
    with relay_to(objects.address, forgetful=True) as relay:
        connection = objects.without_signed_headers(relay.address)
        (problem,) = check(objects.url("x"), connection)
        assert not supports_exclusive_create(open_store(objects.url("staging"), connection))
    assert problem.code == "TGT004" and "If-None-Match" in problem.do


def test_no_first_copy_is_written_to_a_store_that_ignores_conditions(objects: ObjectStore) -> None:
    """Two writers could commit the same version of the table. A copy that exists is not asked about."""
    known = replace(TASK, table="public.known", control=CONTROL)
    assert target(objects.url("x"), objects.connection).refused([TASK]) == {}
    with relay_to(objects.address, forgetful=True) as relay:
        found = target(objects.url("x"), objects.without_signed_headers(relay.address)).refused([TASK, known])
    assert {table: problem.code for table, problem in found.items()} == {"public.t": "TGT004"}
    with relay_to(objects.address, refusing=True) as relay, pytest.raises(StagingUnavailable, match="STG010"):
        target(objects.url("x"), objects.at(relay.address)).refused([TASK])


def test_a_store_that_refuses_access_is_reported(objects: ObjectStore) -> None:
    with relay_to(objects.address, refusing=True) as relay:
        (problem,) = check(objects.url("x"), objects.at(relay.address))
    assert problem.code == "STG010" and "AccessDenied" in problem.found and "put, delete and list" in problem.do


def test_a_missing_bucket_or_endpoint_is_reported(objects: ObjectStore) -> None:
    location = objects.url("x", bucket="no-such-bucket")
    (problem,) = check(location, objects.connection)
    assert "no such bucket" in problem.found and f"{location}/" in problem.where
    (problem,) = check(objects.url("x"), objects.at(DEAD))
    assert "after 5 retries" in problem.found


def test_a_prefix_with_files_that_are_no_delta_table_is_reported(objects: ObjectStore) -> None:
    open_store(objects.url("taken"), objects.connection).write("t/notes.txt", b"mine")
    assert [problem.code for problem in check(objects.url("taken"), objects.connection)] == ["TGT011"]


def test_an_error_of_deltas_library_is_reported_in_one_line(objects: ObjectStore) -> None:
    location = objects.url("", bucket="no-such-bucket")
    with pytest.raises(
        TargetUnavailable, match=rf"TGT010.*{location}t \| found: OSError: {NO_BUCKET[objects.kind]} \|"
    ):
        target(location, objects.connection).state("public.t", "t")


def test_a_session_token_of_the_environment_is_not_used_with_a_key_of_the_connection(
    object_stores: RunningStores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s3 = object_stores[S3]
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    with pytest.raises(CheckFailed, match=r"CON021.*unset AWS_SESSION_TOKEN") as caught:
        target("s3://lake/x", s3.connection).state("public.t", "t")
    assert "of-somebody-else" not in str(caught.value)
    assert not target(str(tmp_path), s3.connection).state("public.t", "t").exists
