"""The log store of Delta on S3, without Spark: Java processes that write the same version of a table, and deltalake
against them. Exactly one writer commits a version."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, Target
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.targets.delta.storage import storage_options
from spark_jobs.runtime.s3a import hadoop_settings
from spark_jobs.runtime.sessions import TARGET_SETTINGS
from tests.buckets import ObjectStore
from tests.spark.log_store_drivers import EMPTY, Driver, appended, at_once, two, version

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ROUNDS = 10


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("moto") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def drivers(objects: ObjectStore) -> Iterator[tuple[Driver, Driver]]:
    location = f"s3://{objects.LAKE}/x"
    ends = Definition("shop", Source("postgres", "none"), Target("delta", location), (), Staging(location))
    settings = hadoop_settings(ends, Secrets(target=objects.connection, staging=objects.connection))
    with two(["delta", "s3"], "airflow_cdc_provider.logstore.ConditionalLogStore", settings) as made:
        yield made


@pytest.fixture
def table(objects: ObjectStore) -> str:
    return f"s3://{objects.LAKE}/{uuid.uuid4().hex[:8]}/t"


def test_a_commit_between_the_read_and_the_write_of_another_driver_is_never_overwritten(
    drivers: tuple[Driver, Driver], table: str
) -> None:
    """The test shows, too, that S3A's plain create, which Delta's own log store uses, overwrites it."""
    one, other = drivers
    path = one.path(version(table, 1))
    late = path.getFileSystem(one.hadoop).create(path, False)
    late.write(bytearray(b"late"))
    assert other.commit(version(table, 1), "first")
    assert not one.commit(version(table, 1), "second")
    assert one.lines(version(table, 1)) == ["first"]
    late.close()
    assert one.lines(version(table, 1)) == ["late"], (
        "S3A refuses an existing file by itself now: the log store is obsolete"
    )


def test_one_of_two_drivers_that_write_a_version_at_once_commits_it(drivers: tuple[Driver, Driver], table: str) -> None:
    one, other = drivers
    for number in range(ROUNDS):
        url = version(table, number)
        commits = at_once(partial(one.commit, url, "one"), partial(other.commit, url, "other"))
        assert commits.count(True) == 1
        assert one.lines(url) == ["one" if commits[0] else "other"]


def test_either_a_driver_or_deltalake_commits_a_version_that_both_write_at_once(
    drivers: tuple[Driver, Driver], table: str, objects: ObjectStore
) -> None:
    options = storage_options(parse_location(table), objects.connection)
    write_deltalake(table, EMPTY, storage_options=options)
    won = []
    for number in range(1, ROUNDS + 1):
        opened = DeltaTable(table, storage_options=options)
        assert opened.version() == number - 1
        line = json.dumps({"txn": {"appId": "driver", "version": number, "lastUpdated": 0}})
        url = version(table, number)
        commits = at_once(partial(drivers[0].commit, url, line), partial(appended, opened, number))
        assert commits.count(True) == 1
        won.append(commits[0])
    after = DeltaTable(table, storage_options=options)
    assert after.version() == ROUNDS
    assert after.transaction_version("driver") == max((n for n, first in enumerate(won, 1) if first), default=None)
    assert after.transaction_version("library") == max((n for n, first in enumerate(won, 1) if not first), default=None)


def test_sessions_name_it_for_the_scheme_of_the_yaml(drivers: tuple[Driver, Driver]) -> None:
    name = str(drivers[0].store.getClass().getName())
    assert TARGET_SETTINGS["delta"]["spark.delta.logStore.s3.impl"] == name


def test_overwrites_are_possible_and_files_are_moved_as_sparks_committer_does(
    drivers: tuple[Driver, Driver], table: str
) -> None:
    driver = drivers[0]
    url = f"{table}/_delta_log/_last_checkpoint"
    assert driver.commit(url, "1", overwrite=True) and driver.commit(url, "2", overwrite=True)
    assert driver.lines(url) == ["2"]
    system = driver.path(url).getFileSystem(driver.hadoop)
    written = system.create(driver.path(f"{table}/_temporary/0/f"), False)
    written.write(bytearray(b"content"))
    written.close()
    assert system.rename(driver.path(f"{table}/_temporary/0"), driver.path(f"{table}/moved"))
    assert system.getFileStatus(driver.path(f"{table}/moved/f")).getLen() == 7
