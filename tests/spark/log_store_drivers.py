"""Java processes that write versions of a Delta table as Spark drivers do, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError, get_return_value

from airflow_cdc_provider import logstore
from airflow_cdc_provider.java import find_java

EMPTY = pa.table({"id": pa.array([], pa.int64())})


class Driver:
    """A Java process that commits through the log store ``name``."""

    def __init__(self, groups: list[str], name: str, settings: Mapping[str, str]) -> None:
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        brought = Path(spec.origin).parent / "jars"
        (py4j,) = brought.glob("py4j-*.jar")
        self._gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j),
            classpath=":".join(map(str, [*logstore.class_path(groups), brought / "*"])),
            javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
            java_path=str(find_java().home / "bin" / "java"),
            die_on_exit=True,
        )
        self.java: Any = self._gateway.jvm
        self.hadoop = self.java.org.apache.hadoop.conf.Configuration()
        for setting, value in settings.items():
            self.hadoop.set(setting, value)
        made: Any = self.java
        for word in name.split("."):
            made = getattr(made, word)
        self.store = made(self.hadoop)

    def path(self, url: str) -> Any:
        return self.java.org.apache.hadoop.fs.Path(url)

    def make_folder(self, url: str) -> None:
        """Spark makes the folder of the log with the table."""
        self.path(url).getFileSystem(self.hadoop).mkdirs(self.path(url))

    def commit(self, url: str, line: str, overwrite: bool = False) -> bool:
        """False if another writer has the version."""
        return self.commit_lines(url, self.java.java.util.List.of(line).iterator(), overwrite)

    def commit_lines(self, url: str, lines: Any, overwrite: bool = False) -> bool:
        try:
            self.store.write(self.path(url), lines, overwrite, self.hadoop)
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


@contextmanager
def running(groups: list[str], name: str, settings: Mapping[str, str], count: int = 2) -> Iterator[list[Driver]]:
    drivers = [Driver(groups, name, settings) for _ in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        # Where this process has a Spark session, PySpark would ask that session's JVM about the errors of these.
        patch.setattr("py4j.java_gateway.get_return_value", get_return_value)
        yield drivers
    for driver in drivers:
        driver.stop()


def version(table: str, number: int) -> str:
    return f"{table}/_delta_log/{number:020d}.json"


def at_once(*acts: Callable[[], bool]) -> list[bool]:
    results: dict[int, bool] = {}
    ready = threading.Barrier(len(acts))

    def run(number: int) -> None:
        ready.wait()
        results[number] = acts[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(len(acts))]


def appended(opened: DeltaTable, number: int) -> bool:
    """A commit without rows by deltalake; False if another writer has the version."""
    mine = CommitProperties(app_transactions=[Transaction("library", number)], max_commit_retries=0)
    try:
        write_deltalake(opened, EMPTY, mode="append", commit_properties=mine)
    except DeltaError:
        return False
    return True
