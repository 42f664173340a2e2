"""The log stores of Delta on object stores, without Spark: Java processes that write the same version of a table, and
deltalake against them. Exactly one writer commits a version."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, Target
from airflow_cdc_provider.core.storage.locations import S3, parse_location
from airflow_cdc_provider.targets.delta.storage import storage_options
from spark_jobs.runtime.object_stores import hadoop_settings
from spark_jobs.runtime.sessions import TARGET_SETTINGS
from tests.buckets import S3_ELSE_NIGHTLY, ObjectStore, RunningStores
from tests.relay import names_commit, relay_to
from tests.spark.log_store_drivers import EMPTY, Driver, appended, at_once, running, version

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ROUNDS = 10


@pytest.fixture(scope="module", params=S3_ELSE_NIGHTLY)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


def log_store(objects: ObjectStore) -> str:
    return TARGET_SETTINGS["delta"][f"spark.delta.logStore.{objects.kind}.impl"]


def settings(objects: ObjectStore, connection: ConnectionInfo) -> dict[str, str]:
    location = objects.url("x")
    ends = Definition(
        name="shop",
        source=Source("postgres", "none"),
        target=Target("delta", location),
        tables=(),
        staging=Staging(location),
    )
    return hadoop_settings(ends, Secrets(target=connection, staging=connection), os.environ)


@pytest.fixture(scope="module")
def drivers(objects: ObjectStore) -> Iterator[list[Driver]]:
    with running(["delta", objects.kind], log_store(objects), settings(objects, objects.connection)) as made:
        yield made


@pytest.fixture
def table(objects: ObjectStore) -> str:
    return objects.url(f"{uuid.uuid4().hex[:8]}/t")


def test_one_of_two_drivers_that_write_a_version_at_once_commits_it(drivers: list[Driver], table: str) -> None:
    one, other = drivers
    one.make_folder(f"{table}/_delta_log")
    for number in range(ROUNDS):
        url = version(table, number)
        commits = at_once(partial(one.commit, url, "one"), partial(other.commit, url, "other"))
        assert commits.count(True) == 1
        assert one.lines(url) == ["one" if commits[0] else "other"]


@pytest.mark.parametrize("objects", S3_ELSE_NIGHTLY, indirect=True)
def test_a_commit_that_is_delayed_on_its_way_to_the_store_never_replaces_a_commit_made_meanwhile(
    drivers: list[Driver], table: str, objects: ObjectStore
) -> None:
    """As a driver that is suspended behind all of its own checks."""
    drivers[1].make_folder(f"{table}/_delta_log")
    url = version(table, 0)
    with (
        relay_to(objects.address, names_commit) as relay,
        running(
            ["delta", objects.kind], log_store(objects), settings(objects, objects.at(relay.address)), 1
        ) as delayed,
    ):
        relay.holding.set()
        late: list[bool] = []
        thread = threading.Thread(target=lambda: late.append(delayed[0].commit(url, "late")))
        thread.start()
        assert relay.arrived.wait(60), "the commit did not reach the store"
        assert drivers[1].commit(url, "first")
        relay.released.set()
        thread.join()
    assert late == [False]
    assert drivers[1].lines(url) == ["first"]


def test_either_a_driver_or_deltalake_commits_a_version_that_both_write_at_once(
    drivers: list[Driver], table: str, objects: ObjectStore
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


def test_overwrites_are_possible_and_files_are_moved_as_sparks_committer_does(
    drivers: list[Driver], table: str
) -> None:
    driver = drivers[0]
    url = f"{table}/_delta_log/_last_checkpoint"
    driver.make_folder(f"{table}/_delta_log")
    assert driver.commit(url, "1", overwrite=True) and driver.commit(url, "2", overwrite=True)
    assert driver.lines(url) == ["2"]
    system = driver.path(url).getFileSystem(driver.hadoop)
    written = system.create(driver.path(f"{table}/_temporary/0/f"), False)
    written.write(bytearray(b"content"))
    written.close()
    assert system.rename(driver.path(f"{table}/_temporary/0"), driver.path(f"{table}/moved"))
    assert system.getFileStatus(driver.path(f"{table}/moved/f")).getLen() == 7


def test_s3as_plain_create_replaces_a_commit_which_is_why_s3_has_a_log_store_of_ours(
    object_stores: RunningStores,
) -> None:
    objects = object_stores[S3]
    table = objects.url(f"{uuid.uuid4().hex[:8]}/t")
    with running(["delta", S3], log_store(objects), settings(objects, objects.connection), 1) as (driver,):
        path = driver.path(version(table, 1))
        late = path.getFileSystem(driver.hadoop).create(path, False)
        late.write(bytearray(b"late"))
        assert driver.commit(version(table, 1), "first")
        late.close()
        assert driver.lines(version(table, 1)) == ["late"], (
            "S3A refuses an existing file by itself now: the log store is obsolete"
        )
