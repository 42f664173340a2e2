"""The cache of jars. A fetcher that writes small files stands in for Ivy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_cdc_provider import jars
from airflow_cdc_provider.core.errors import CheckFailed, Retryable
from airflow_cdc_provider.jars import Jar
from airflow_cdc_provider.sandbox import jars as server_jars

CONTENT = b"a jar"
ONE = Jar("org.example:one:1.0", "one-1.0.jar", hashlib.sha256(CONTENT).hexdigest())
TWO = Jar("org.example:two:2.0", "two-2.0.jar", hashlib.sha256(CONTENT).hexdigest())


class Network:
    """Serves the same bytes for every coordinate and records the requests."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.requested: list[str] = []

    def __call__(self, wanted: Sequence[Jar], scratch: Path) -> list[Path]:
        self.requested += [jar.coordinates for jar in wanted]
        for jar in wanted:
            (scratch / jar.file).write_bytes(self.content)
        return [scratch / jar.file for jar in wanted]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_CDC_JARS", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "read_lock", lambda _: {"a": [ONE], "b": [TWO]})
    return tmp_path / "cache"


LOCKS = (jars.LOCK, server_jars.LOCK)


def test_the_jars_of_jobs_and_of_the_servers_of_the_sandbox_have_separate_locks() -> None:
    stores = {"abfss", "gs", "s3", "iceberg_abfss", "iceberg_gs"}
    assert set(jars.read_lock()) == {"delta", "iceberg", "mysql", "postgres", *stores}
    databases = {f"postgres-{major}" for major in (14, 15, 16, 17)}
    assert set(jars.read_lock(server_jars.LOCK)) == {"apicurio-converter", "debezium", "kafka-broker", *databases}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_contains_every_jar_with_a_checksum(lock: Path) -> None:
    groups = jars.read_lock(lock)
    for jar in (jar for group in groups.values() for jar in group):
        assert jar.file == jars.file_name(jar.coordinates)
        assert len(bytes.fromhex(jar.sha256)) == 32


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_written_as_it_was_read(lock: Path, tmp_path: Path) -> None:
    jars.write_lock(jars.read_lock(lock), tmp_path / "lock.json")
    assert (tmp_path / "lock.json").read_bytes() == lock.read_bytes()


def test_only_missing_jars_are_fetched(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network()
    monkeypatch.setattr(jars, "fetch", network)
    assert jars.ensure(["a"]) == [cache / "one-1.0.jar"]
    assert jars.ensure() == [cache / "one-1.0.jar", cache / "two-2.0.jar"]
    assert jars.ensure() == [cache / "one-1.0.jar", cache / "two-2.0.jar"]
    assert network.requested == [ONE.coordinates, TWO.coordinates]


def test_a_fetched_jar_with_another_checksum_never_enters_the_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "fetch", Network(b"something else"))
    with pytest.raises(CheckFailed, match=r"ENV002 org\.example:one:1\.0"):
        jars.ensure(["a"])
    assert not cache.exists()


def test_a_jar_changed_in_the_cache_is_refused_with_both_checksums(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "fetch", Network())
    (jar,) = jars.ensure(["a"])
    jar.write_bytes(b"tampered")
    with pytest.raises(CheckFailed) as caught:
        jars.ensure(["a"])
    (problem,) = caught.value.problems
    assert problem.where == str(jar)
    assert problem.found == f"sha256 {hashlib.sha256(b'tampered').hexdigest()}"
    assert problem.allowed == f"sha256 {ONE.sha256}"


@pytest.mark.parametrize("output", ["no route to host", "\t\tmodule not found: org.example#one;1.0"])
def test_a_failed_fetch_reports_the_jar_and_the_output_of_ivy(
    cache: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.setattr(jars, "RESOLVE", f"print({output!r})")
    with pytest.raises(Retryable) as caught:
        jars.ensure(["a"])
    (problem,) = caught.value.problems
    assert (problem.code, problem.found, problem.where) == ("ENV003", output, str(cache))
    assert ONE.coordinates in problem.what


def test_a_renewed_lock_takes_file_names_and_checksums_from_the_fetched_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock.json"
    jars.write_lock({"a": [Jar("org.example:one:1.1", ONE.file, ONE.sha256)]}, lock)
    monkeypatch.setattr(jars, "fetch", Network(b"newer"))
    jars.relock(lock)
    (written,) = json.loads(lock.read_text())["groups"]["a"]
    assert written == {
        "coordinates": "org.example:one:1.1",
        "file": "one-1.1.jar",
        "sha256": hashlib.sha256(b"newer").hexdigest(),
    }
