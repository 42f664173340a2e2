"""First copies of MariaDB's tables that are interrupted or paused go on with the splits that they have read."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.copied.kept_copies import KeptCopy, KeptSplit, kept_copy_path
from airflow_cdc_provider.connectors.sources.mysql.source import MysqlSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.copy_progress import COPIES, copy_folder
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.hooks import drivers
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.faults import attempts
from tests.faults.injection import Injection
from tests.faults.matrix import KILL, Case, Failpoint
from tests.mariadb import series
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline
from tests.waiting import LIMIT_S, until

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DATABASE, TARGET = "kept_source", "kept"
TABLE = f"{DATABASE}.t"
ROWS = 40_000
SPLITS = 4
WRITES_PER_FILE = 20
MARK = "kept"
CHANGES = (
    "UPDATE t SET n = n + 1 WHERE id % 1000 = 7",
    "DELETE FROM t WHERE id IN (5, 20005, 39999)",
    f"INSERT INTO t VALUES (-3, 3, 'first'), ({ROWS + 9}, 9, 'last')",
    "UPDATE t SET id = id + 50000 WHERE id IN (11, 30011)",
)
Server: TypeAlias = "pymysql.Connection[Any]"
Rows = dict[int, tuple[int, str]]


@dataclass
class Reads:
    """The splits that were read to their end, in this process. ``before``: called with the number of each read."""

    done: list[str] = field(default_factory=list)
    started: int = 0
    before: Callable[[int], object] = lambda _: None


@dataclass(kw_only=True)
class KeptPipeline(Pipeline):
    info: ConnectionInfo
    server: Server
    database: Database | None = None

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.info, self.database.connection if self.database else ConnectionInfo())

    def sql(self, *statements: str) -> list[Any]:
        with self.server.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def truth(self) -> Rows:
        return {key: (n, v) for key, n, v in self.sql("SELECT id, n, v FROM t")}

    def copy(self) -> Rows:
        if self.database:
            rows = self.database.execute(f"SELECT id, n, v FROM {self.database.schema}.{self.target(TABLE)}")
            assert len({row[0] for row in rows}) == len(rows), "no key twice"
            return {key: (n, v) for key, n, v in rows}
        return {key: (row["n"], row["v"]) for key, row in self.copied_rows(TABLE, "id", "id", "n", "v").items()}

    def kept_splits(self) -> int:
        paths = [file.path for file in self.replicator().log.store.files(copy_folder(TABLE))]
        return sum("/delta/" in path or "/rows/" in path for path in paths)

    def kept_copy(self) -> KeptCopy:
        path = kept_copy_path(TABLE)
        return KeptCopy.decode(self.replicator().log.store.read(path), path)

    def mark_a_kept_row(self) -> int:
        """Of the first split that is kept, one that no change concerns. Returns its key."""
        store = self.replicator().log.store
        paths = [file.path for file in store.files(copy_folder(TABLE)) if "/rows/" in file.path]
        path = str(KeptSplit.decode(store.read(paths[0]), paths[0]).result)
        with store.open_input(path) as content:
            rows = pq.read_table(content)
        first = rows.to_pylist()[1]
        others = rows.filter(pc.not_equal(rows["id"], first["id"]))
        changed = pa.Table.from_pylist([{**first, "n": 0, "v": MARK}], schema=rows.schema)
        store.delete(path)
        with store.open_output(path) as content:
            pq.write_table(pa.concat_tables([others, changed]), content)
        return int(first["id"])

    def state(self) -> TableState:
        return self.replicator().state.tables(self.definition.name)[TABLE].state


@pytest.fixture
def kept(
    mariadb: EmbeddedMariaDB, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[KeptPipeline]:
    """``request.param``: the target; Spark's tasks load rows into a database."""
    kind = getattr(request, "param", "delta")
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(pymysql.connect(**login, autocommit=True))  # type: ignore[arg-type]
        database = None
        if kind in ("mysql", "postgres"):
            of_target = mariadb if kind == "mysql" else request.getfixturevalue("postgres")
            database = stack.enter_context(new_schema(kind, of_target, TARGET))
        target = database.target if database else Target("delta", f"{tmp_path}/lake")
        definition = Definition(
            name="kept",
            source=Source("mysql", "source", options={"databases": (DATABASE,)}),
            target=target,
            tables=(TableRule(TABLE),),
            staging=Staging(f"{tmp_path}/staging"),
        )
        if database:
            definition = replace(definition, spark=replace(definition.spark, engine=EngineMode.SPARK))
        info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
        made = KeptPipeline(tmp_path, spark, definition, info=info, server=server, database=database)
        made.sql(f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
        made.sql("CREATE TABLE t (id int PRIMARY KEY, n int, v varchar(20))")
        made.sql(f"INSERT INTO t SELECT seq, seq * 2, 'v' FROM {series(ROWS)}")
        yield made
        made.sql(f"DROP DATABASE {DATABASE}")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    found, read_split = Reads(), MysqlSource.read_split

    def counted(self: MysqlSource, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        found.started += 1
        found.before(found.started)
        yield from read_split(self, split, schema)
        found.done.append(split)

    monkeypatch.setattr(MysqlSource, "read_split", counted)
    return found


def fail_from(first: int) -> Callable[[int], None]:
    def fail(number: int) -> None:
        if number >= first:
            raise SourceUnavailable.of("SRC001", "the server went away")

    return fail


def test_an_interrupted_copy_reads_only_what_is_missing_under_its_first_anchor(
    kept: KeptPipeline, reads: Reads
) -> None:
    reads.before = fail_from(SPLITS)
    assert not kept.run().green
    begun = kept.kept_copy()
    assert (len(reads.done), kept.kept_splits()) == (SPLITS - 1, SPLITS - 1)
    kept.sql(*CHANGES)
    reads.before = lambda _: None
    kept.run()
    assert len(reads.done) == len(set(reads.done)) == SPLITS, "no split was read twice"
    control = kept.control(TABLE)
    assert (control.floor, control.window >= begun.window) == (begun.copy.floor, True)
    kept.run_until_idle()
    assert kept.copy() == kept.truth()
    assert kept.replicator().log.store.names(COPIES) == [] or kept.kept_splits() == 0


def test_a_paused_copy_stops_reading_and_goes_on_when_it_is_resumed(kept: KeptPipeline, reads: Reads) -> None:
    def pause(number: int) -> None:
        if number == 2:
            kept.record_command(CommandKind.PAUSE, TABLE)

    reads.before = pause
    kept.definition = replace(kept.definition, snapshot=replace(kept.definition.snapshot, parallel=1))
    kept.run()
    assert 0 < kept.kept_splits() < SPLITS
    read, begun = len(reads.done), kept.kept_copy()
    kept.sql(*CHANGES)
    kept.run()
    assert (len(reads.done), kept.state()) == (read, TableState.PAUSED)
    row = kept.replicator().state.tables(kept.definition.name)[TABLE]
    assert row.remedy == f"airflow cdc resume kept --table {TABLE}" and "operator" in row.reason
    kept.record_command(CommandKind.RESUME, TABLE)
    kept.run_until_idle()
    assert len(reads.done) == len(set(reads.done)) == SPLITS
    assert kept.control(TABLE).floor == begun.copy.floor
    assert kept.copy() == kept.truth() and kept.state() is TableState.REPLICATING


def test_a_copy_starts_again_when_its_table_changed_meanwhile(kept: KeptPipeline, reads: Reads) -> None:
    reads.before = fail_from(3)
    assert not kept.run().green
    kept.sql("ALTER TABLE t ADD w int DEFAULT 4", "UPDATE t SET w = 5 WHERE id < 9")
    reads.before = lambda _: None
    reads.done.clear()
    kept.run_until_idle()
    assert len(reads.done) == SPLITS
    rows = kept.copied_rows(TABLE, "id", "id", "w")
    assert {key: row["w"] for key, row in rows.items()} == dict(kept.sql("SELECT id, w FROM t"))


@pytest.mark.nightly
def test_a_driver_that_is_killed_in_a_split_leaves_the_splits_before_it(kept: KeptPipeline, reads: Reads) -> None:
    kept.definition = replace(kept.definition, snapshot=replace(kept.definition.snapshot, parallel=1))
    third = Failpoint("target.write", "in the third file", ("snapshot",), nth=2 * WRITES_PER_FILE + 2)
    killed = Injection(Case(third, "snapshot", KILL, "delta"), "snapshot", kept)  # type: ignore[arg-type]
    kept.run(injections=[killed])  # its retry is in this process
    assert killed.fired and 0 < len(reads.done) < SPLITS
    kept.sql(*CHANGES)
    kept.run_until_idle()
    assert kept.copy() == kept.truth()


@pytest.mark.nightly
@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
def test_a_driver_that_is_killed_in_a_copy_into_a_database_leaves_the_splits_before_it(
    kept: KeptPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of a kept split is marked, so that a split that is read again would show."""
    snapshot = kept.definition.snapshot
    kept.definition = replace(kept.definition, snapshot=replace(snapshot, parallel=1, max_rows_per_second=5_000))
    submitted, marked = list[str](), threading.Event()

    def environment() -> dict[str, str] | None:
        """The first try runs in a driver of its own, the others in this process, the second one not before the mark."""
        submitted.append("")
        return {} if len(submitted) == 1 else None if marked.wait(LIMIT_S) else {}

    monkeypatch.setattr(attempts, "armed", SimpleNamespace(get=environment))
    dag_run = kept.dag_run()
    running = threading.Thread(target=kept.execute, args=(dag_run,))
    running.start()
    until(lambda: kept.kept_splits() >= 1, "a split is kept")
    for pid in (pid for pids in drivers.running(f"{kept.folder}/staging").values() for pid in pids):
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(submitted) == 2, "the copy is tried again")
    begun = kept.kept_copy()
    assert 1 <= kept.kept_splits() < SPLITS
    key = kept.mark_a_kept_row()
    kept.sql(*CHANGES)
    marked.set()
    running.join()
    assert dag_run.states["snapshot"] == "success", dag_run.problems
    kept.run_until_idle()
    assert kept.control(TABLE).floor == begun.copy.floor
    found, truth = kept.copy(), kept.truth()
    assert found.pop(key) == (0, MARK), "the split was not read again"
    del truth[key]
    assert found == truth


@pytest.mark.nightly
@pytest.mark.parametrize("kept", ["mysql"], indirect=True)
def test_splits_are_kept_in_staging_where_sparks_tasks_read_them(kept: KeptPipeline) -> None:
    """A copy whose last split is missing, as if its reader had been killed."""
    snapshot = kept.definition.snapshot
    kept.definition = replace(kept.definition, snapshot=replace(snapshot, parallel=1, max_rows_per_second=5_000))
    dag_run = kept.dag_run()
    stopped = threading.Thread(target=kept.execute, args=(dag_run,))
    stopped.start()
    until(lambda: kept.kept_splits() >= 1, "a split is kept")
    kept.record_command(CommandKind.PAUSE, TABLE)
    stopped.join()
    files = [file.path for file in kept.replicator().log.store.files(copy_folder(TABLE)) if "/files/" in file.path]
    assert 1 <= len(files) == kept.kept_splits() < SPLITS
    kept.sql(*CHANGES)
    kept.record_command(CommandKind.RESUME, TABLE)
    kept.run_until_idle()
    assert kept.copy() == kept.truth()
