"""What ``check`` reports about the bucket of a REST catalog: it tries what a job does there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import S3
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.iceberg.check import remedy
from airflow_cdc_provider.targets.iceberg.store_properties import lacks_region
from airflow_cdc_provider.targets.iceberg.table_files import error_text
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from tests.buckets import KINDS, ObjectStore, RunningStores
from tests.relay import relay_to
from tests.rest_catalog import Warehouse, rest_catalog
from tests.warehouses import bucket_warehouse, connection_credentials, store_address

pytestmark = pytest.mark.server

SECRET = "s3cret"


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


@pytest.fixture
def warehouse(objects: ObjectStore) -> Warehouse:
    return bucket_warehouse(objects, f"check/{uuid.uuid4().hex}", vended=True)


@contextmanager
def target(
    folder: Path, warehouse: Warehouse, storage: str, extra: dict[str, str] | None = None
) -> Iterator[IcebergTarget]:
    with rest_catalog(folder, SECRET, warehouse) as url:
        connection = ConnectionInfo("rest", url, login="cdc", password=SECRET, extra=extra or {})
        definition = Target("iceberg", connection="rest", options={"storage": storage})
        yield IcebergTarget(definition, connection, "shop", ChangeLog(LocalStore("/nowhere")))


def check(folder: Path, warehouse: Warehouse, storage: str, extra: dict[str, str] | None = None) -> list[Problem]:
    with target(folder, warehouse, storage, extra) as tables:
        return tables.check([])


def test_a_usable_bucket_is_no_problem_and_nothing_remains(
    tmp_path: Path, warehouse: Warehouse, objects: ObjectStore
) -> None:
    with target(tmp_path, warehouse, objects.kind) as tables:
        assert tables.check([]) == []
        with tables._open_catalog() as catalog:
            assert not catalog.namespace_exists("cdc")
    assert [key for key in objects.keys("check/") if not key.endswith("/cdc_check/")] == []


@pytest.mark.parametrize("objects", [S3], indirect=True)
def test_a_store_that_the_definition_does_not_name_is_reported(
    tmp_path: Path, warehouse: Warehouse, objects: ObjectStore
) -> None:
    (problem,) = check(tmp_path, warehouse, "folder")
    assert (problem.code, problem.do) == ("TGT006", f"set target.storage: {objects.kind}")
    assert problem.found.startswith(warehouse.location)


def test_a_folder_where_the_definition_names_a_store_is_reported(tmp_path: Path) -> None:
    (problem,) = check(tmp_path, Warehouse(str(tmp_path)), S3)
    assert (problem.code, problem.do) == ("TGT006", "set target.storage: folder")
    assert check(tmp_path, Warehouse(str(tmp_path)), "folder") == []


def test_a_missing_bucket_is_reported(tmp_path: Path, warehouse: Warehouse, objects: ObjectStore) -> None:
    missing = replace(warehouse, location=objects.url("x", bucket="no-such-bucket"), vended={})
    extra = connection_credentials(objects)
    (problem,) = check(tmp_path, missing, objects.kind, extra)
    assert problem.code == "TGT007" and problem.do.startswith("create the bucket"), problem
    assert objects.secret not in str(problem)


def test_missing_rights_are_reported(tmp_path: Path, warehouse: Warehouse, objects: ObjectStore) -> None:
    with relay_to(objects.address, refusing=True) as relay:
        (problem,) = check(tmp_path, replace(warehouse, config=store_address(objects, relay.address)), objects.kind)
    assert problem.code == "TGT007" and problem.do.startswith("grant the rights"), problem
    assert not any(secret in str(problem) for secret in warehouse.vended.values())


@pytest.mark.parametrize(
    ("properties", "environment", "expected"),
    [
        ({}, {}, True),
        ({"s3.region": "eu-west-1"}, {}, False),
        ({"client.region": "eu-west-1"}, {}, False),
        ({"s3.endpoint": "https://store"}, {}, False),
        ({}, {"AWS_REGION": "eu-west-1"}, False),
    ],
)
def test_a_region_that_only_pyarrow_finds_is_reported(
    properties: dict[str, str], environment: dict[str, str], expected: bool
) -> None:
    assert lacks_region("s3://lake/t", properties, environment) is expected
    assert not lacks_region("gs://lake/t", properties, environment)


def test_the_remedy_for_another_region_is_to_name_it() -> None:
    """The text of pyarrow; moto has one region."""
    error = (
        "OSError: AWS Error UNKNOWN (HTTP status 301) during HeadObject operation: No response body. Looks like the "
    )
    error += "configured region is 'us-east-1' while the bucket is located in 'eu-west-1'."
    assert remedy(error, "rest") == "set `s3.region` in the extra of connection rest"


def test_an_error_is_shown_without_signatures() -> None:
    error = OSError("GET 'https://acme.blob.core.windows.net/lake?sv=1&sig=c2VjcmV0' failed: 403\nmore")
    assert error_text(error) == "OSError: GET 'https://acme.blob.core.windows.net/lake?… failed: 403"
