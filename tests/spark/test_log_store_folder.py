"""The log store of Delta in a folder, without Spark: Java processes that write the same version of a table, and the
other writers of such a table against them. Exactly one writer commits a version."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_cdc_provider.staging.local_store import LocalStore
from spark_jobs.runtime.sessions import TARGET_SETTINGS
from tests.spark.log_store_drivers import EMPTY, Driver, appended, at_once, running, version

pytestmark = pytest.mark.jvm

ROUNDS = 200
LIBRARY_ROUNDS = 20


@pytest.fixture(scope="module")
def drivers() -> Iterator[list[Driver]]:
    with running(["delta"], TARGET_SETTINGS["delta"]["spark.delta.logStore.file.impl"], {}) as made:
        yield made


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "a table" / "_delta_log").mkdir(parents=True)
    return f"file:{tmp_path}/a table"


def file_of(url: str) -> Path:
    return Path(url.removeprefix("file:"))


def late(driver: Driver, fifo: Path) -> Callable[[str], bool]:
    """A commit that reads its lines from a pipe and waits until they are written there."""
    os.mkfifo(fifo)
    to_pipe = driver.java.java.nio.file.Path.of(driver.java.java.net.URI.create(fifo.as_uri()))
    return lambda url: driver.commit_lines(url, driver.java.java.nio.file.Files.lines(to_pipe).iterator())


def test_a_commit_between_the_read_and_the_write_of_another_driver_is_never_overwritten(
    drivers: list[Driver], table: str, tmp_path: Path
) -> None:
    one, other = drivers
    url, commits = version(table, 1), list[bool]()
    begun = late(one, tmp_path / "pipe")
    thread = threading.Thread(target=lambda: commits.append(begun(url)))
    thread.start()
    with (tmp_path / "pipe").open("w") as pipe:  # the commit has started now
        assert other.commit(url, "first")
        pipe.write("late\n")
    thread.join()
    assert commits == [False]
    assert one.lines(url) == ["first"]


def test_one_of_two_drivers_that_write_a_version_at_once_commits_it(drivers: list[Driver], table: str) -> None:
    one, other = drivers
    for number in range(ROUNDS):
        url = version(table, number)
        commits = at_once(partial(one.commit, url, "one"), partial(other.commit, url, "other"))
        assert commits.count(True) == 1
        assert one.lines(url) == ["one" if commits[0] else "other"]
    assert len(list(file_of(table).rglob("*.json"))) == len(list((file_of(table) / "_delta_log").iterdir())) == ROUNDS


def test_either_a_driver_or_deltalake_commits_a_version_that_both_write_at_once(
    drivers: list[Driver], table: str
) -> None:
    folder = str(file_of(table))
    write_deltalake(folder, EMPTY)
    won = []
    for number in range(1, LIBRARY_ROUNDS + 1):
        opened = DeltaTable(folder)
        assert opened.version() == number - 1
        line = json.dumps({"txn": {"appId": "driver", "version": number, "lastUpdated": 0}})
        commits = at_once(partial(drivers[0].commit, version(table, number), line), partial(appended, opened, number))
        assert commits.count(True) == 1
        won.append(commits[0])
    after = DeltaTable(folder)
    assert after.version() == LIBRARY_ROUNDS
    assert after.transaction_version("driver") == max((n for n, first in enumerate(won, 1) if first), default=None)
    assert after.transaction_version("library") == max((n for n, first in enumerate(won, 1) if not first), default=None)


def test_a_version_of_another_writer_is_refused_by_deltalake_and_by_our_log_store(table: str) -> None:
    """Also if they read the table before: neither replaces a version that it did not read."""
    folder = file_of(table)
    write_deltalake(folder, EMPTY)
    opened = DeltaTable(folder)
    taken = file_of(version(table, 1))
    taken.write_text(json.dumps({"txn": {"appId": "driver", "version": 1, "lastUpdated": 0}}))
    before = taken.read_bytes()
    assert not appended(opened, 1)
    assert not LocalStore(str(folder)).create(f"_delta_log/{taken.name}", b"{}")
    assert taken.read_bytes() == before


def test_overwrites_are_possible_also_if_hadoop_left_a_checksum_of_the_old_file(
    drivers: list[Driver], table: str
) -> None:
    driver = drivers[0]
    url = f"{table}/_delta_log/_last_checkpoint"
    written = driver.path(url).getFileSystem(driver.hadoop).create(driver.path(url), True)
    written.write(bytearray(b"0"))
    written.close()
    assert file_of(url).with_name("._last_checkpoint.crc").exists()
    assert driver.commit(url, "1", overwrite=True) and driver.commit(url, "2", overwrite=True)
    assert driver.lines(url) == ["2"]
