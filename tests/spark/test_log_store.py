"""The log store of Delta on S3, without Spark: Java processes that write the same version of a table, and Delta's other
library against them. Of those who write one version, exactly one has it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError, get_return_value

from airflow_cdc_provider import jars, logstore
from airflow_cdc_provider.core.connections import Secrets
from airflow_cdc_provider.core.definition import Definition, Source, Staging, Target
from airflow_cdc_provider.core.places import place_of
from airflow_cdc_provider.java import find_java
from airflow_cdc_provider.targets.delta.storage import storage_options
from spark_jobs.buckets import hadoop_settings
from spark_jobs.sessions import TARGET_SETTINGS
from tests.buckets import ObjectStore

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ROUNDS = 10


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("moto") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def class_path() -> str:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    ours = jars.ensure(["delta", "s3"])
    return ":".join(map(str, [logstore.build(ours), *ours, Path(spec.origin).parent / "jars" / "*"]))


class Driver:
    """A Java process that commits as a Spark driver does."""

    def __init__(self, class_path: str, objects: ObjectStore) -> None:
        (py4j,) = (Path(class_path.rpartition(":")[2]).parent).glob("py4j-*.jar")
        self._gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j),
            classpath=class_path,
            javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
            java_path=str(find_java().home / "bin" / "java"),
            die_on_exit=True,
        )
        self.java: Any = self._gateway.jvm
        place = f"s3://{objects.LAKE}/x"
        ends = Definition("shop", Source("postgres", "none"), Target("delta", place), (), Staging(place))
        self.hadoop = self.java.org.apache.hadoop.conf.Configuration()
        for name, value in hadoop_settings(
            ends, Secrets(target=objects.connection, staging=objects.connection)
        ).items():
            self.hadoop.set(name, value)
        self.store = self.java.airflow_cdc_provider.logstore.ConditionalLogStore(self.hadoop)

    def path(self, url: str) -> Any:
        return self.java.org.apache.hadoop.fs.Path(url)

    def commit(self, url: str, line: str, overwrite: bool = False) -> bool:
        """False where somebody else has the version."""
        try:
            self.store.write(self.path(url), self.java.java.util.List.of(line).iterator(), overwrite, self.hadoop)
        except Py4JJavaError as error:
            assert error.java_exception.getClass().getName() == "java.nio.file.FileAlreadyExistsException", error
            return False
        return True

    def lines(self, url: str) -> list[str]:
        found = self.store.read(self.path(url), self.hadoop)
        lines = []
        while found.hasNext():
            lines.append(str(found.next()))
        return lines

    def stop(self) -> None:
        self._gateway.shutdown()


@pytest.fixture(scope="module")
def drivers(class_path: str, objects: ObjectStore) -> Iterator[tuple[Driver, Driver]]:
    one, other = Driver(class_path, objects), Driver(class_path, objects)
    with pytest.MonkeyPatch.context() as patch:
        # Where this process has a Spark session, PySpark would ask that session's JVM about the errors of these two.
        patch.setattr("py4j.java_gateway.get_return_value", get_return_value)
        yield one, other
    one.stop()
    other.stop()


def version(table: str, number: int) -> str:
    return f"{table}/_delta_log/{number:020d}.json"


@pytest.fixture
def table(objects: ObjectStore) -> str:
    return f"s3://{objects.LAKE}/{uuid.uuid4().hex[:8]}/t"


def at_once(*acts: Callable[[], bool]) -> list[bool]:
    said: dict[int, bool] = {}
    ready = threading.Barrier(len(acts))

    def run(number: int) -> None:
        ready.wait()
        said[number] = acts[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [said[number] for number in range(len(acts))]


def test_a_commit_that_comes_between_another_drivers_look_and_its_write_is_never_overwritten(
    drivers: tuple[Driver, Driver], table: str
) -> None:
    """With S3A's plain create, which Delta's own log store uses, it would be: that is shown too."""
    one, other = drivers
    path = one.path(version(table, 1))
    late = path.getFileSystem(one.hadoop).create(path, False)
    late.write(bytearray(b"late"))
    assert other.commit(version(table, 1), "first")
    assert not one.commit(version(table, 1), "second")
    assert one.lines(version(table, 1)) == ["first"]
    late.close()
    assert one.lines(version(table, 1)) == ["late"], "S3A excludes others by itself now: the log store has had its day"


def test_of_two_drivers_that_write_one_version_at_once_one_has_it(drivers: tuple[Driver, Driver], table: str) -> None:
    one, other = drivers
    for number in range(ROUNDS):
        url = version(table, number)
        said = at_once(partial(one.commit, url, "one"), partial(other.commit, url, "other"))
        assert said.count(True) == 1
        assert one.lines(url) == ["one" if said[0] else "other"]


def test_of_a_driver_and_deltas_other_library_that_write_one_version_at_once_one_has_it(
    drivers: tuple[Driver, Driver], table: str, objects: ObjectStore
) -> None:
    options = storage_options(place_of(table), objects.connection)
    empty = pa.table({"id": pa.array([], pa.int64())})
    write_deltalake(table, empty, storage_options=options)
    won = []
    for number in range(1, ROUNDS + 1):
        opened = DeltaTable(table, storage_options=options)
        assert opened.version() == number - 1
        line = json.dumps({"txn": {"appId": "driver", "version": number, "lastUpdated": 0}})
        url = version(table, number)
        said = at_once(partial(drivers[0].commit, url, line), partial(appended, opened, empty, number))
        assert said.count(True) == 1
        won.append(said[0])
    after = DeltaTable(table, storage_options=options)
    assert after.version() == ROUNDS
    assert after.transaction_version("driver") == max((n for n, first in enumerate(won, 1) if first), default=None)
    assert after.transaction_version("library") == max((n for n, first in enumerate(won, 1) if not first), default=None)


def appended(opened: DeltaTable, rows: pa.Table, number: int) -> bool:
    mine = CommitProperties(app_transactions=[Transaction("library", number)], max_commit_retries=0)
    try:
        write_deltalake(opened, rows, mode="append", commit_properties=mine)
    except DeltaError:
        return False
    return True


def test_sessions_name_it_for_the_scheme_of_the_yaml(drivers: tuple[Driver, Driver]) -> None:
    name = str(drivers[0].store.getClass().getName())
    assert TARGET_SETTINGS["delta"]["spark.delta.logStore.s3.impl"] == name


def test_what_may_be_overwritten_is_and_files_are_moved_as_sparks_committer_does(
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
