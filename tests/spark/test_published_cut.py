"""Readers of two tables beside the writers: at the published cut they always see one moment of the source."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.publish_cut import publish_cut
from airflow_cdc_provider.control.replicator import Replicator as Worker
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.staging.whole_windows import WholeWindows
from airflow_cdc_provider.targets.naming import default_name
from airflow_cdc_provider.targets.registry import Targets
from spark_jobs import extract, merge, snapshot, stage
from tests.delta_tables import read
from tests.spark.databases import Database, new_schema
from tests.spark.replicator import Replicator, now

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TABLES = ("public.a", "public.b")
WINDOWS = 2

Pair = tuple[int, int]
"""The values that a reader saw in both tables; the source changes them together, so at any moment they are equal."""


@pytest.fixture
def source(database: psycopg.Connection[object]) -> psycopg.Connection[object]:
    for table in ("a", "b"):
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int)")
        database.execute(f"INSERT INTO {table} VALUES (1, 0)")
    return database


class PublishedTables:
    """Two tables whose windows are merged and then published, as the end of a run does it."""

    def __init__(self, replicator: Replicator, source: psycopg.Connection[object]) -> None:
        source.execute(f"CREATE PUBLICATION {replicator.definition.name} FOR TABLE a, b")
        self.replicator = replicator
        self.source = source
        self.lo = dict(replicator.source.open_stream(list(TABLES)))
        replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run)
        self.publish()

    def merge_window(self) -> None:
        one, before = self.replicator, self._number()
        while self._number() == before:
            time.sleep(0.01)
        limit = dict(one.source.status(self.lo, TABLES).limit)
        step = one.step(StepKind.EXTRACT, window=one.log.sealed() + 1, lo=self.lo, limit=limit)
        window = one.run(step, extract.run).window
        assert window is not None
        self.lo = window.hi
        staged = one.step(StepKind.STAGE, window=one.log.sealed())
        one.run(staged, stage.run)
        for table in TABLES:
            tables = one.tasks(table)
            one.run(one.step(StepKind.MERGE, tables, merge_of=staged.attempt, window=one.log.sealed()), merge.run)
        self.publish()

    def _number(self) -> int:
        row = self.source.execute("SELECT n FROM b").fetchone()
        assert row is not None
        return int(row[0])  # type: ignore[call-overload]

    def publish(self) -> None:
        one, sealed = self.replicator, self.replicator.log.sealed()
        targets = Targets(one.definition, lambda _: one.target)
        worker = Worker(one.definition, one.source, targets, one.log, None)  # type: ignore[arg-type]
        if sealed:
            rows = [self._row(table) for table in TABLES]
            assert publish_cut(worker, "default", rows, sealed, WholeWindows(one.log)) is not None

    def _row(self, table: str) -> TableRow:
        target = default_name(table)
        control = self.replicator.target.state(table, target).control
        assert control is not None
        return current_row(table, target, control, None, now())


def observed_pairs(
    source: psycopg.Connection[object], published: PublishedTables, read: Callable[[], Pair | None]
) -> list[Pair]:
    """The pairs of repeated reads, while one writer changed both tables and windows were merged."""
    stop, seen = threading.Event(), list[Pair]()

    def write() -> None:
        dsn = f"{source.info.dsn} password={source.info.password}"
        with psycopg.connect(dsn) as connection:
            while not stop.wait(0.01):
                with connection.transaction():
                    connection.execute("UPDATE a SET n = n + 1")
                    connection.execute("UPDATE b SET n = n + 1")

    def read_repeatedly() -> None:
        while not stop.is_set():
            pair = read()
            if pair is not None:
                seen.append(pair)

    threads = [threading.Thread(target=one) for one in (write, read_repeatedly)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(WINDOWS):
            published.merge_window()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    last = read()
    return [*seen, last] if last else seen


def test_delta_tables_are_read_at_the_versions_of_the_cut(
    spark: SparkSession, tmp_path: Path, source: psycopg.Connection[object], connection: ConnectionInfo
) -> None:
    name = f"cut{abs(hash(str(tmp_path))) % 10**9}"
    published = PublishedTables(Replicator(tmp_path, name, connection, [TableRule(table) for table in TABLES]), source)
    lake = Path(published.replicator.definition.target.location)
    newest: list[Pair] = []

    def read() -> Pair | None:
        newest.append((_number(DeltaTable(lake / "a")), _number(DeltaTable(lake / "b"))))
        files = sorted((lake / "_cdc_cuts" / name).glob("*.json"))
        if not files:
            return None
        versions = json.loads(files[-1].read_text())["tables"]
        a, b = (_number(DeltaTable(lake / table, version=versions[table])) for table in ("a", "b"))
        return a, b

    seen = observed_pairs(source, published, read)
    assert any(a != b for a, b in newest), "without the cut they differ"
    assert all(a == b for a, b in seen)
    assert len({a for a, _ in seen}) >= 2, "the cut moves on"


def test_tables_of_a_database_are_read_where_the_cut_is_valid(
    spark: SparkSession,
    tmp_path: Path,
    source: psycopg.Connection[object],
    connection: ConnectionInfo,
    request: pytest.FixtureRequest,
) -> None:
    name = f"cut{abs(hash(str(tmp_path))) % 10**9}"
    rules = [TableRule(table) for table in TABLES]
    with new_schema("postgres", request.getfixturevalue("postgres"), name) as warehouse:
        target = Target("postgres", connection="warehouse", options={"schema": name})
        ends = {"target": target, "warehouse": warehouse.connection}
        published = PublishedTables(Replicator(tmp_path, name, connection, rules, **ends), source)  # type: ignore[arg-type]
        seen = observed_pairs(source, published, lambda: _both(warehouse, name))
    assert all(a == b for a, b in seen)
    assert len({a for a, _ in seen}) >= 2, "the cut moves on"


def _number(table: DeltaTable) -> int:
    return int(read(table, "n")["n"][0].as_py())


def _both(warehouse: Database, name: str) -> Pair | None:
    with warehouse.session() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute(f"SELECT valid FROM {name}._cdc_published")
        valid = cursor.fetchone() == (1,)
        cursor.execute(f"SELECT a.n, b.n FROM {name}.a, {name}.b")
        pair = cursor.fetchone()
        cursor.execute("COMMIT")
    return pair if valid else None
