"""Event files in a bucket of each kind of object store give the records that they give in a folder."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.transports.files.folder import Folder
from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.storage.locations import GS, S3
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.open_store import open_store
from tests.blocks import unpacked
from tests.buckets import KINDS, ObjectStore, RunningStores, new_location
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator

pytestmark = pytest.mark.server
MYSQL = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
ODD = "d.t/Bücher & Söhne %20.jsonl.gz"


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


def lines() -> bytes:
    history = Simulator(Random("buckets"), moves=True, late_check=False).history(8)
    messages = DebeziumEncoder(MYSQL, Random(1)).messages(history)
    return b"".join(
        b'{"topic":"p.t","key":%s,"value":%s}\n' % (one.key or b"null", one.value or b"null") for one in messages
    )


def keys(location: str, connection: ConnectionInfo) -> list[str]:
    """The keys in the files, in order."""
    options = {"format": "debezium", "location": location, "topic_prefix": "p", "stable_for": 0.0}
    source = FilesSource(Source("files", "", options=options), connection, "shop")
    tasks = [TableTask(one.table, "t", one, TableRule(one.table), "", TableState.PENDING) for one in source.tables()]
    start = source.open_stream([])
    found, ends = [], []
    for split in source.splits(start, source.status(start, []).limit):
        for item in unpacked(source.read(split, tasks, 1)):
            found += [item.order_key] if isinstance(item, ChangeRecord) else []
            ends += [item.position] if isinstance(item, Boundary) else []
    assert not source.status(ends[-1], []).has_changes
    return found


def test_a_bucket_gives_the_same_records_as_a_folder(objects: ObjectStore, tmp_path: Path) -> None:
    locations = [(str(tmp_path), ConnectionInfo()), (objects.url("events"), objects.connection)]
    for location, connection in locations:
        open_store(location, connection).write(ODD, gzip.compress(lines()))
    folder, bucket = (keys(*location) for location in locations)
    assert folder and folder == bucket
    (file,) = Folder(*locations[1]).files()
    assert (file.path, file.size) == (ODD, len(gzip.compress(lines())))


def test_a_missing_bucket_is_reported_without_its_secret(objects: ObjectStore) -> None:
    with pytest.raises(SourceUnavailable, match="SRC074") as failed:
        list(Folder(objects.url("at/all", bucket="nowhere"), objects.connection).files())
    assert objects.secret not in str(failed.value)


@pytest.mark.parametrize("kind", [S3, GS])
def test_markers_of_folders_are_no_removed_files(kind: str, object_stores: RunningStores) -> None:
    location, connection = new_location(kind, object_stores, Path())
    prefix = location.partition(f"{ObjectStore.LAKE}/")[2]
    open_store(location, connection).write("d.t/1.jsonl", lines())
    for marker in ("", "d.t/", "empty/"):
        object_stores[kind].put(f"{prefix}/{marker}", b"")
    assert [file.path for file in Folder(location, connection).files()] == ["d.t/1.jsonl"]
    assert keys(location, connection)


def test_a_name_that_cannot_be_read_is_named(object_stores: RunningStores) -> None:
    location, connection = new_location(S3, object_stores, Path())
    prefix = location.partition(f"{ObjectStore.LAKE}/")[2]
    object_stores[S3].put(f"{prefix}/orders//b.json", b"{}")
    with pytest.raises(CheckFailed, match=r"SRC079 .*orders//b.json"):
        list(Folder(location, connection).files())
