"""The log store of Delta in an account of Azure with hierarchical namespace, whose endpoint has a request for renames,
without Spark: Java processes that write the same version of a table. Exactly one of them commits a version."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from functools import partial

import pytest

from airflow_cdc_provider.core.storage.azure import FLAT_NAMESPACE
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.stores import store_access
from airflow_cdc_provider.sandbox.data_lake import EmbeddedDataLake
from spark_jobs.runtime.sessions import TARGET_SETTINGS
from tests.relay import relay_to
from tests.spark.log_store_drivers import Driver, at_once, running, version

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

ROUNDS = 10
HOST = f"{EmbeddedDataLake.account}.dfs.core.windows.net"
LOG_STORE = TARGET_SETTINGS["delta"]["spark.delta.logStore.abfss.impl"]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedDataLake]:
    with EmbeddedDataLake() as server:
        yield server


def settings(server: EmbeddedDataLake, address: str) -> dict[str, str]:
    """As for a real account: emulators have no such endpoint."""
    location = parse_location(f"abfss://lake@{HOST}")
    found = store_access(location, server.at(address)).hadoop_settings({})
    flat = {f"{name}.{HOST}" for name in FLAT_NAMESPACE}
    return {name: value for name, value in found.items() if name not in flat} | {"fs.azure.account.hns.enabled": "true"}


def renames(method: str, path: str, headers: Mapping[str, str]) -> bool:
    return "x-ms-rename-source" in headers


@pytest.fixture(scope="module")
def drivers(server: EmbeddedDataLake) -> Iterator[list[Driver]]:
    with running(["delta", "abfss"], LOG_STORE, settings(server, f"http://127.0.0.1:{server.port}")) as made:
        yield made


@pytest.fixture
def table(drivers: list[Driver]) -> str:
    table = f"abfss://lake@{HOST}/{uuid.uuid4().hex[:8]}/t"
    drivers[0].make_folder(f"{table}/_delta_log")
    return table


def test_one_of_two_drivers_that_write_a_version_at_once_commits_it(drivers: list[Driver], table: str) -> None:
    one, other = drivers
    for number in range(ROUNDS):
        url = version(table, number)
        commits = at_once(partial(one.commit, url, "one"), partial(other.commit, url, "other"))
        assert commits.count(True) == 1
        assert one.lines(url) == ["one" if commits[0] else "other"]


def test_a_rename_that_is_delayed_on_its_way_to_the_store_never_replaces_a_commit_made_meanwhile(
    server: EmbeddedDataLake, drivers: list[Driver], table: str
) -> None:
    url = version(table, 0)
    with (
        relay_to(f"http://127.0.0.1:{server.port}", renames) as relay,
        running(["delta", "abfss"], LOG_STORE, settings(server, relay.address), 1) as (delayed,),
    ):
        relay.holding.set()
        late: list[bool] = []
        thread = threading.Thread(target=lambda: late.append(delayed.commit(url, "late")))
        thread.start()
        assert relay.arrived.wait(60), "the rename did not reach the store"
        assert drivers[1].commit(url, "first")
        relay.released.set()
        thread.join()
    assert late == [False]
    assert drivers[1].lines(url) == ["first"]
