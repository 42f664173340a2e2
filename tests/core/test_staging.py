"""Staging in a folder: exclusive creation, and the change log on top of it."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, StagingInvalid, StagingUnavailable
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, Manifest, TableSlice, manifest_path, window_folder
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.open_store import OBJECT_STORE, open_store

RECORD = ControlRecord(
    "shop", "public.a", "l1", "o1", "a1", 1, 1, "f", State(TableState.REPLICATING, "2026-01-01T00:00:00Z"), nonce="n"
)


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(LocalStore(str(tmp_path / "shop")))


def manifest(window: int, attempt: str = "a1") -> Manifest:
    times = {"lo": {"slot": "0/1"}, "hi": {"slot": "0/2"}, "sealed_at": "2026-01-01T00:00:00Z"}
    return Manifest("l1", window, 1, previous_sha256="", attempt=attempt, tables={"public.a": TableSlice("d")}, **times)


def _race(arguments: tuple[str, int]) -> tuple[bool, str]:
    folder, number = arguments
    log = ChangeLog(LocalStore(folder))
    sealed = log.seal(manifest(1, f"attempt-{number}"))
    return sealed.attempt == f"attempt-{number}", sealed.attempt


def test_of_many_processes_that_seal_a_window_one_wins_and_all_get_its_manifest(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        outcomes = list(pool.map(_race, [(str(tmp_path / "shop"), number) for number in range(20)]))
    assert [won for won, _ in outcomes].count(True) == 1
    assert len({attempt for _, attempt in outcomes}) == 1


class Forgetful(LocalStore):
    """As an object store that ignores the conditions of requests."""

    def create(self, path: str, content: bytes) -> bool:
        self.write(path, content)
        return True


def test_a_log_is_only_opened_in_a_store_that_creates_files_exclusively(tmp_path: Path) -> None:
    """With any other, two processes could both seal a window."""
    with pytest.raises(CheckFailed, match="ENV004"):
        ChangeLog(Forgetful(str(tmp_path / "new"))).create("o1", "2026-01-01T00:00:00Z")
    folder = str(tmp_path / "shop")
    log = ChangeLog(LocalStore(folder))
    made, content = log.create("o1", "2026-01-01T00:00:00Z"), log.store.read("LOG")
    with pytest.raises(CheckFailed, match="ENV004"):
        ChangeLog(Forgetful(folder)).create("o1", "2026-01-02T00:00:00Z")
    assert log.store.read("LOG") == content and log.create("o1", "2026-01-03T00:00:00Z") == made


def test_links_and_parent_paths_are_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    store = LocalStore(str(tmp_path / "shop"))
    store.write("windows/1/file", b"ours")
    (tmp_path / "shop/windows/2").symlink_to(outside)
    (tmp_path / "shop/windows/1/link").symlink_to(outside / "secret")
    calls = [
        lambda path: store.read(path),
        lambda path: store.exists(path),
        lambda path: store.create(path, b"x"),
        lambda path: store.write(path, b"x"),
        lambda path: store.open_output(path),
        lambda path: store.open_input(path),
        lambda path: store.names(path),
        lambda path: store.delete(path),
        lambda path: store.url(path),
    ]
    for path in ("windows/2/secret", "windows/2", "windows/1/link", "../outside/secret", str(outside / "secret")):
        for call in calls:
            with pytest.raises(StagingInvalid, match=rf"STG007 .*where: {store.root} \| found: "):
                call(path)
    assert (outside / "secret").read_text() == "secret" and os.listdir(outside) == ["secret"]
    store.delete("windows/1")
    assert (outside / "secret").exists()


def test_the_folder_of_staging_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "staging").symlink_to(tmp_path / "disk")
    store = LocalStore(str(tmp_path / "staging"))
    assert store.create("a", b"x")
    assert store.read("a") == b"x"


def test_a_created_file_is_complete_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    assert store.create("deep/er/file", b"content")
    assert not store.create("deep/er/file", b"other")
    assert store.read("deep/er/file") == b"content"
    assert os.listdir(tmp_path / "deep/er") == ["file"]


def test_a_file_is_replaced_atomically_and_listed_once(tmp_path: Path) -> None:
    store = LocalStore(f"file://{tmp_path}/")
    store.write("a", b"1")
    store.write("a", b"2")
    assert (store.read("a"), store.names("")) == (b"2", ["a"])
    assert store.url("a") == f"{tmp_path}/a"


def test_a_missing_file_reads_as_missing_lists_as_empty_and_is_deleted_without_error(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        store.read("nothing")
    assert store.names("nothing") == []
    store.delete("nothing")
    assert not store.exists("nothing")


def test_a_new_output_file_never_replaces_an_old_one(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    with store.open_output("w/f.parquet") as file:
        file.write(b"1")
    with pytest.raises(StagingUnavailable, match="STG010"):
        store.open_output("w/f.parquet")


def test_a_folder_that_cannot_be_written_is_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("a file")
    with pytest.raises(StagingUnavailable, match=f"STG010.*{tmp_path}/shop.*do:") as caught:
        LocalStore(str(tmp_path / "shop")).create("LOG", b"")
    assert caught.value.retryable


def test_a_write_that_the_disk_refuses_leaves_no_file(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = LocalStore(str(tmp_path))
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(StagingUnavailable, match=r"STG010.*found: File too large"):
            store.create("windows/1/MANIFEST", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert os.listdir(tmp_path / "windows/1") == []


def test_an_unknown_storage_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(CheckFailed, match=r"ENV004.*found: hdfs.*allowed: .*s3://bucket/path"):
        open_store("hdfs://bucket/cdc", ConnectionInfo())


@pytest.mark.parametrize(
    ("location", "extra"),
    [("s3://lake", "s3"), ("gs://lake", "gcs"), ("abfss://lake@acme.dfs.core.windows.net", "azure")],
)
def test_a_bucket_without_its_library_names_the_extra_to_install(
    location: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, OBJECT_STORE, raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(NotInstalled, match=rf"ENV010.*no package obstore.*airflow-cdc-provider\[{extra}\]"):
        open_store(location, ConnectionInfo())


def test_a_log_has_one_identity_for_all_runs(log: ChangeLog) -> None:
    assert log.identity() is None
    made = log.create("o1", "2026-01-01T00:00:00Z")
    assert log.create("o2", "2026-01-02T00:00:00Z") == made == log.identity()


def test_windows_are_counted_by_their_manifests_and_not_by_their_folders(log: ChangeLog) -> None:
    assert (log.sealed(), log.oldest()) == (0, 0)
    for number in (1, 2, 3):
        log.seal(manifest(number))
    log.store.write(f"{window_folder(4)}/attempt/public.a/f.parquet", b"an attempt without a manifest")
    assert (log.sealed(), log.oldest()) == (3, 1)
    log.store.delete(manifest_path(1))
    assert log.oldest() == 2


def test_a_missing_window_is_reported_with_the_existing_ones(log: ChangeLog) -> None:
    log.seal(manifest(2))
    with pytest.raises(StagingInvalid, match=r"STG001 window 1 .*found: windows 2 to 2"):
        log.manifest(1)


def test_a_file_that_somebody_removed_is_named(log: ChangeLog) -> None:
    listing = DataFile("carry/public.a/a1/listing.json", 0, 0, "")
    for read in (lambda: log.schema("0123"), lambda: log.quarantined_records(CarryOver(listing=listing))):
        with pytest.raises(StagingInvalid, match=r"STG008 .*(0123|listing)\.json .*lifecycle rule"):
            read()


def test_a_damaged_manifest_is_never_read(log: ChangeLog) -> None:
    log.seal(manifest(1))
    content = log.store.read(manifest_path(1))
    log.store.write(manifest_path(1), content.replace(b"0/2", b"0/3"))
    with pytest.raises(StagingInvalid, match="STG002"):
        log.manifest(1)


def test_a_token_identifies_one_control_record(log: ChangeLog) -> None:
    assert log.write_control(RECORD)
    assert log.write_control(RECORD), "the same attempt may repeat it"
    assert not log.write_control(replace(RECORD, nonce="other"))
    assert log.control("public.a", RECORD.token) == RECORD
    assert log.control("public.a", RECORD.token + 1) is None


def test_a_fence_has_one_owner_whatever_its_window(log: ChangeLog) -> None:
    assert log.claim_fence(replace(RECORD, fence=2, window=5))
    assert not log.claim_fence(replace(RECORD, fence=2, window=6, nonce="other"))
    assert not log.claim_fence(replace(RECORD, fence=1, nonce="late"))
    assert log.highest_fence("public.a") == 2
    assert log.highest_fence("public.b") == 0


def test_the_highest_fence_stays_claimed_however_much_is_removed(log: ChangeLog) -> None:
    for fence in (1, 2, 3):
        assert log.claim_fence(replace(RECORD, fence=fence))
    log.remove_old_controls("public.a", below=1 << 62)
    assert log.highest_fence("public.a") == 3
    assert log.control("public.a", RECORD.token) is None


def test_a_schema_is_found_by_its_id(log: ChangeLog) -> None:
    schema = TableSchema("public.a", (Column("id", LogicalType(Kind.DECIMAL, 9, 2)),), ("id",))
    log.write_schema(schema)
    log.write_schema(schema)
    assert log.schema(schema.schema_id) == schema


def test_a_manifest_is_identified_by_its_bytes(log: ChangeLog) -> None:
    log.seal(manifest(1))
    assert log.manifest_sha256(0) == ""
    assert len(log.manifest_sha256(1)) == 64
