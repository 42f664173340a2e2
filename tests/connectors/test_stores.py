"""The contract of storage for the change log: a folder, and a bucket of each kind of object store."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, StagingUnavailable
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.storage.locations import GS, S3, parse_location
from airflow_cdc_provider.core.storage.stores import store_access
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store, supports_exclusive_create
from airflow_cdc_provider.staging.transfer import copy_files
from tests.buckets import BY_SAS, DEAD, KINDS, S3_ELSE_NIGHTLY, ObjectStore, RunningStores, new_location

pytestmark = pytest.mark.server

Where = tuple[str, ConnectionInfo]
ODD = "steps/scheduled__2026-01-01T00%3A00%3A00%2B00%3A00/Bücher & Söhne.json"


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


@pytest.fixture(params=["folder", *KINDS, pytest.param(BY_SAS, marks=pytest.mark.nightly)])
def where(request: pytest.FixtureRequest, tmp_path: Path, object_stores: RunningStores) -> Where:
    return new_location(request.param, object_stores, tmp_path)


@pytest.fixture
def store(where: Where) -> Store:
    return open_store(*where)


def manifest(attempt: str) -> Manifest:
    return Manifest("l1", 1, 1, {}, {}, "", attempt, "2026-01-01T00:00:00Z", {})


def _seal(arguments: tuple[Where, int]) -> tuple[bool, str]:
    where, number = arguments
    log = ChangeLog(open_store(*where))
    time.sleep(0.05)  # until the other processes have started
    sealed = log.seal(manifest(f"attempt-{number}"))
    return sealed.attempt == f"attempt-{number}", sealed.attempt


def test_a_store_that_was_used_can_be_sent_to_another_process(store: Store) -> None:
    store.write("rows/part", b"x")
    sent = pickle.loads(cloudpickle.dumps(store))
    assert (sent.read("rows/part"), sent.names("rows")) == (b"x", ["part"])


@pytest.mark.parametrize("where", ["folder", *S3_ELSE_NIGHTLY], indirect=True)
def test_of_many_processes_that_seal_a_window_one_wins_and_all_get_its_manifest(where: Where) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        outcomes = list(pool.map(_seal, [(where, number) for number in range(20)]))
    assert [won for won, _ in outcomes].count(True) == 1
    assert len({attempt for _, attempt in outcomes}) == 1


def test_a_file_is_created_once_and_can_be_replaced(store: Store) -> None:
    assert store.create("deep/er/file", b"content")
    assert not store.create("deep/er/file", b"other")
    assert store.read("deep/er/file") == b"content"
    store.write("deep/er/file", b"other")
    assert store.read("deep/er/file") == b"other"
    assert supports_exclusive_create(store) and store.names("") == ["deep"]


def test_names_are_the_direct_children_files_and_folders_alike(store: Store) -> None:
    for path in ("windows/2/MANIFEST", "windows/1/a/f", "windows/10", "windows2/f", "LOG"):
        store.write(path, b"")
    assert store.names("") == ["LOG", "windows", "windows2"]
    assert store.names("windows") == ["1", "10", "2"]
    assert store.names("nothing") == []


def test_a_name_may_have_any_characters(store: Store, where: Where) -> None:
    store.write(ODD, b"odd")
    folder, _, name = ODD.rpartition("/")
    assert store.names(folder) == [name] and store.read(ODD) == b"odd"
    assert store.url(ODD) == f"{where[0]}/{ODD}"


def test_a_folder_is_removed_with_its_content_and_nothing_else(store: Store) -> None:
    for path in ("a/b", "a/c/d", "ab", "e"):
        store.write(path, b"")
    store.delete("a")
    store.delete("e")
    store.delete("nothing")
    assert store.names("") == ["ab"]


def test_all_files_are_listed_copied_and_removed(store: Store, tmp_path: Path) -> None:
    contents = {"LOG": b"id", "windows/1/MANIFEST": b"sealed", "windows/1/a/t a%20b.parquet": b"x" * 3_000_000}
    for path, content in contents.items():
        store.write(path, content)
    files = {file.path: file.bytes for file in store.files("")}
    assert files == {path: len(content) for path, content in contents.items()}
    assert [file.path for file in store.files("windows/1/a")] == ["windows/1/a/t a%20b.parquet"]
    assert list(store.files("absent")) == []
    local = LocalStore(f"{tmp_path}/copied")
    local.write("left over", b"from an interrupted copy")
    assert copy_files(store, local, lambda: None) == 3
    assert {file.path: local.read(file.path) for file in local.files("")} == contents
    store.delete("")
    store.delete("")
    assert list(store.files("")) == []
    assert copy_files(local, store, lambda: None) == 3
    assert {path: store.read(path) for path in contents} == contents
    store.delete("")


@pytest.mark.parametrize("kind", [S3, GS])
def test_markers_of_folders_are_no_files_and_end_no_loop(kind: str, object_stores: RunningStores) -> None:
    where = new_location(kind, object_stores, Path())
    store, objects = open_store(*where), object_stores[kind]
    prefix = where[0].partition(f"{ObjectStore.LAKE}/")[2]
    for marker in ("", "rows/", "rows/_temporary/0/"):
        objects.put(f"{prefix}/{marker}", b"")
    store.write("rows/1", b"1")
    store.write("rows/_SUCCESS", b"")
    assert {file.path for file in store.files("")} == {"rows/1", "rows/_SUCCESS"}
    store.delete("rows")
    store.delete("")
    assert list(store.files("")) == []
    assert all(key.endswith("/") for key in objects.keys(prefix))


def test_several_processes_may_remove_a_folder_at_once(store: Store) -> None:
    for _ in range(5):
        for number in range(40):
            store.write(f"a/{number % 4}/{number}", b"")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(store.delete, ["a"] * 4))
        assert store.names("") == []


def test_a_missing_file_reads_as_missing(store: Store) -> None:
    assert not store.exists("nothing")
    for read in (store.read, store.open_input):
        with pytest.raises(FileNotFoundError):
            read("nothing")


def test_an_output_file_exists_once_it_is_closed_and_never_replaces_an_old_one(store: Store) -> None:
    with store.open_output("w/f") as file:
        file.write(b"1")
        file.write(b"2" * 20_000_000)
        assert not file.closed
    assert file.closed and len(store.read("w/f")) == 20_000_001
    with pytest.raises(StagingUnavailable, match="STG010"):
        store.open_output("w/f")


def test_parquet_is_written_and_read_through_the_store(store: Store) -> None:
    table = pa.table({"a": list(range(100_000)), "b": ["x" * 20] * 100_000})
    with store.open_output("f.parquet") as file:
        pq.write_table(table, file, row_group_size=10_000)
    with store.open_input("f.parquet") as file:
        assert pq.ParquetFile(file).metadata.num_rows == 100_000
    with store.open_input("f.parquet") as file:
        assert pq.read_table(file, columns=["a"], filters=[("a", ">=", 99_990)])["a"].to_pylist()[0] == 99_990


def test_an_input_file_is_read_in_any_order(store: Store) -> None:
    store.write("f", b"0123456789")
    with store.open_input("f") as file:
        assert (file.seek(-3, 2), file.read(2), file.tell(), file.read(), file.read()) == (7, b"78", 9, b"9", b"")
        assert (file.seek(1), file.read(3), file.seek(2, 1), file.read(1)) == (1, b"123", 6, b"6")


# Buckets only


def test_a_missing_bucket_is_reported_by_all_that_write_or_list(objects: ObjectStore) -> None:
    location = objects.url("cdc", bucket="no-such-bucket")
    store = open_store(location, objects.connection)
    actions: list[Callable[[], object]] = [
        lambda: store.create("f", b""),
        lambda: store.write("f", b""),
        lambda: store.names(""),
        lambda: store.delete("f"),
    ]
    for action in actions:
        with pytest.raises(
            StagingUnavailable, match=rf"STG010.*{location}.*(?i:no ?such ?bucket|ContainerNotFound).*do:"
        ):
            action()


def test_an_unreachable_endpoint_is_reported_soon_and_can_be_retried(objects: ObjectStore) -> None:
    began = time.monotonic()
    with pytest.raises(StagingUnavailable, match=r"STG010.*cannot read an object.*after \d retries") as caught:
        open_store(objects.url("cdc"), objects.at(DEAD)).read("LOG")
    assert time.monotonic() - began < 150 and caught.value.retryable


def test_no_message_and_no_text_of_a_connection_contains_its_secret(objects: ObjectStore) -> None:
    dead = objects.at(DEAD)
    with pytest.raises(StagingUnavailable) as caught:
        open_store(objects.url("cdc"), dead).names("")
    with pytest.raises(StagingUnavailable) as refused:
        open_store(objects.url("x", bucket="no-such-bucket"), objects.connection).names("")
    assert objects.secret not in f"{caught.value} {refused.value} {dead!r}"
    assert objects.secret not in repr(store_access(parse_location(objects.url("cdc")), objects.connection))


# S3 only


@pytest.fixture
def s3(object_stores: RunningStores) -> ObjectStore:
    return object_stores[S3]


def test_a_key_of_the_connection_is_not_used_with_a_token_of_the_environment(
    s3: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    store = open_store(s3.url("mixed"), s3.connection)
    store.write("f", b"")
    provider = store._bucket.credential_provider  # type: ignore[attr-defined]
    assert provider()["token"] is None


def test_a_connection_without_a_key_uses_that_of_the_environment(
    s3: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    store = open_store(s3.url("ambient"), replace(s3.connection, login="", password=""))
    assert supports_exclusive_create(store)


@pytest.mark.parametrize(
    ("connection", "found"),
    [
        (ConnectionInfo("lake", login="k"), "one half of a key"),
        (ConnectionInfo("lake", extra={"endpoint_url": "localhost:9000"}), "without http"),
    ],
)
def test_a_connection_whose_options_would_be_ignored_in_part_is_refused(connection: ConnectionInfo, found: str) -> None:
    with pytest.raises(CheckFailed, match=f"CON020.*connection lake.*{found}"):
        open_store("s3://lake/cdc", connection)
