"""A window is landed from a real slot, sealed once, and starts at the end of the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging import change_log as changelog
from spark_jobs import extract
from spark_jobs.runtime.job import Job
from spark_jobs.windows.window_writer import Limits
from tests.spark.replicator import Replicator, by_table, now

Database = psycopg.Connection[object]
RULES = [TableRule("public.a"), TableRule("public.b")]


@pytest.fixture
def replicator(tmp_path: Path, database: Database, connection: ConnectionInfo) -> Replicator:
    database.execute("CREATE TABLE a (id int PRIMARY KEY, note text)")
    database.execute("CREATE TABLE b (id int PRIMARY KEY)")
    database.execute("CREATE TABLE nobodys (id int)")
    name = f"ext{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE a, b, nobodys")
    return Replicator(tmp_path, name, connection, RULES)


class Stream:
    """Consecutive windows, as open_window plans them."""

    def __init__(self, replicator: Replicator) -> None:
        self.replicator = replicator
        self.lo = dict(replicator.source.open_stream(["public.a", "public.b"]))
        self.window = 0

    def step(self) -> Step:
        limit = dict(self.replicator.source.status(self.lo, ["public.a", "public.b"]).limit)
        return self.replicator.step(StepKind.EXTRACT, window=self.window + 1, lo=self.lo, limit=limit)

    def land(self, limits: Limits | None = None) -> StepResult:
        def run(job: Job) -> StepResult:
            _, window = extract.land_window(job, limits)
            return job.result([], window)

        result = self.replicator.run(self.step(), run if limits else extract.run)
        if result.window:
            self.lo, self.window = result.window.hi, result.window.window
        return result

    def manifest(self) -> Manifest:
        return self.replicator.log.manifest(self.window)

    def rows(self, table: str) -> list[tuple[str, str | None]]:
        store = self.replicator.log.store
        return [
            (row["op"], row["after"])
            for file in self.manifest().tables[table].files
            for row in pq.read_table(store.url(file.path)).to_pylist()
        ]


def test_a_window_holds_the_changes_of_its_tables_and_lists_them_all(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO a VALUES (1, 'x'), (2, 'y')")
    database.execute("UPDATE a SET note = 'z' WHERE id = 2")
    database.execute("DELETE FROM a WHERE id = 1")
    database.execute("INSERT INTO nobodys VALUES (1)")
    result = stream.land()

    tables = by_table(result)
    assert [op for op, _ in stream.rows("public.a")] == ["schema", "insert", "insert", "update", "delete"]
    assert stream.rows("public.a")[3][1] == '{"id":2,"note":"z"}'
    assert tables["public.a"].counts == {"schema": 1, "insert": 2, "update": 1, "delete": 1}
    assert tables["public.b"].outcome is Outcome.UNCHANGED
    manifest = stream.manifest()
    assert set(manifest.tables) == {"public.a", "public.b"}
    assert manifest.tables["public.b"].definition_sha256 == replicator.tasks("public.b")[0].definition_sha256
    assert manifest.ignored == 1
    assert manifest.commit_ts_min is not None and manifest.commit_ts_max is not None
    assert replicator.log.schema(manifest.tables["public.a"].schema_ids[-1]).names == ("id", "note")
    assert result.window is not None
    assert (result.window.cut, result.window.adopted, result.window.records) == ("limit", False, 5)
    assert "jvm_heap" not in result.peak_memory_bytes, "one split: the driver lands it"


def test_windows_of_any_size_are_contiguous_and_complete(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stream = Stream(replicator)
    for number in range(12):
        database.execute(
            "INSERT INTO b SELECT generate_series(%s::int, %s::int)", [number * 2000, number * 2000 + 1999]
        )
    seen: list[int] = []
    cuts = []
    while not cuts or cuts[-1] == "size":
        before = stream.lo
        result = stream.land(Limits(window_records=5000))
        assert result.window is not None
        assert stream.manifest().lo == before
        cuts.append(result.window.cut)
        assert [part.cut or "limit" for part in stream.manifest().tables.values()] == [cuts[-1]] * 2
        seen += [json.loads(after or "")["id"] for op, after in stream.rows("public.b") if op == "insert"]
    assert seen == list(range(24_000))
    assert cuts[:2] == ["size", "size"] and cuts[-1] == "limit"
    last = stream.manifest()
    assert last.previous_sha256 == replicator.log.manifest_sha256(last.window - 1)


def test_a_sealed_window_is_adopted_without_reading(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    step = stream.step()
    first = stream.land()
    database.execute("INSERT INTO b VALUES (2)")
    again = replicator.run(replace(step, attempt="another", secrets_path=stream.step().secrets_path), extract.run)
    assert first.window is not None and again.window is not None
    assert again.window == replace(first.window, adopted=True, cut="")
    assert by_table(again)["public.b"].counts == by_table(first)["public.b"].counts
    assert not Path(replicator.log.store.url(f"windows/{1:010d}/another")).exists()


def test_of_two_attempts_that_land_one_window_one_wins_and_the_other_adopts(
    spark: SparkSession, replicator: Replicator, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    slow, quick = stream.step(), stream.step()
    token = tmp_path / "token"
    token.touch()
    monkeypatch.setenv(TOKEN, str(token))
    monkeypatch.setenv(ARMED, "seal.before=raise:SourceUnavailable")

    def overtaken(job: Job) -> StepResult:
        """The fast attempt seals while the slow one is just before its seal."""
        monkeypatch.setattr(changelog, "failpoint", lambda name: name == "seal.before" and overtake())
        return extract.run(job)

    def overtake() -> None:
        monkeypatch.setattr(changelog, "failpoint", lambda name: None)
        assert replicator.run(quick, extract.run).problem is None

    result = replicator.run(slow, overtaken)
    assert result.window is not None and result.window.adopted
    assert replicator.log.manifest(1).attempt == quick.attempt


def test_an_attempt_that_fails_before_the_seal_leaves_no_window(
    spark: SparkSession, replicator: Replicator, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    token = tmp_path / "token"
    token.touch()
    monkeypatch.setenv(TOKEN, str(token))
    monkeypatch.setenv(ARMED, "seal.before=raise:StagingUnavailable")
    failed = stream.land()
    assert failed.problem is not None and failed.retryable
    assert replicator.log.sealed() == 0
    assert by_table(stream.land())["public.b"].counts["insert"] == 1


def test_a_window_that_would_leave_a_range_out_is_refused(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    stream.land()
    database.execute("INSERT INTO b VALUES (2)")
    step = stream.step()
    result = replicator.run(replace(step, lo=step.limit), extract.run)
    assert result.problem is not None and not result.retryable
    assert result.problem.code == "STG004"
    assert replicator.log.sealed() == 1


def test_another_change_log_is_refused(spark: SparkSession, replicator: Replicator, database: Database) -> None:
    result = replicator.run(replace(Stream(replicator).step(), log_id="other"), extract.run)
    assert result.problem is not None and not result.retryable
    assert result.problem.code == "STG003"


def test_another_source_than_that_of_the_run_gives_no_window(
    replicator: Replicator, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    refused = replicator.run(replace(stream.step(), source_identity={"system_identifier": "8"}), extract.run)
    assert refused.problem is not None and refused.retryable
    assert (refused.problem.code, replicator.log.sealed()) == ("SRC010", 0)

    promoted_while_it_reads(monkeypatch)
    late = stream.land()
    assert late.problem is not None and late.retryable
    assert (late.problem.code, replicator.log.sealed()) == ("SRC010", 0)

    monkeypatch.undo()
    assert by_table(stream.land())["public.b"].counts["insert"] == 1


def promoted_while_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to another server once a split was read."""
    read, identity, seen = PostgresSource.read, PostgresSource.identity, list[bool]()

    def reading(source: PostgresSource, *args: Any) -> Iterator[StreamItem]:
        yield from read(source, *args)
        seen.append(True)

    def then(source: PostgresSource) -> dict[str, str]:
        return identity(source) | ({"timeline": "9"} if seen else {})

    monkeypatch.setattr(PostgresSource, "read", reading)
    monkeypatch.setattr(PostgresSource, "identity", then)


def test_a_failure_in_the_executor_keeps_its_message(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    step = stream.step()
    replicator.source.drop_stream()
    result = replicator.run(step, extract.run)
    assert result.problem is not None and not result.retryable
    assert result.problem.code.startswith("SRC")
    assert "resync" in result.problem.do


def test_nothing_but_foreign_changes_seals_an_empty_window_at_the_limit(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stream = Stream(replicator)
    database.execute("CREATE TABLE other (id int)")
    database.execute("INSERT INTO other VALUES (1)")
    step = stream.step()
    result = replicator.run(step, extract.run)
    assert result.window is not None
    assert result.window.records == 0
    assert result.window.hi["slot"] == step.limit["slot"]


def test_a_table_blocked_by_a_breaking_schema_does_not_cut_every_later_window(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    """Its target keeps the old schema; the log has the new one."""
    stream = Stream(replicator)
    database.execute("INSERT INTO a VALUES (1, 'x')")
    stream.land()
    schema = replicator.log.schema(stream.manifest().tables["public.a"].schema_ids[-1])
    control = ControlRecord(
        replicator.definition.name, "public.a", replicator.log_id, "tests", "a", 1, 1, "0" * 50,
        State(TableState.REPLICATING, now()), schema=schema,
    )  # fmt: skip
    tasks = replicator.tasks

    def with_control(*names: str) -> object:
        return tuple(replace(task, control=control) if task.table == "public.a" else task for task in tasks(*names))

    replicator.tasks = with_control  # type: ignore[method-assign, assignment]
    database.execute("INSERT INTO b VALUES (1)")
    database.execute("ALTER TABLE a RENAME COLUMN note TO remark")
    for number in range(2, 6):
        database.execute("INSERT INTO a VALUES (%s, 'x')", [number])
    cuts, holes = [], []
    while not cuts or cuts[-1] != "limit":
        window = stream.land().window
        assert window is not None
        cuts.append(window.cut)
        holes += [(hole.kind, hole.table) for hole in stream.manifest().holes]
    assert cuts == ["schema", "limit"]
    assert holes == []


@pytest.mark.jvm
def test_a_killed_driver_leaves_the_window_to_the_next_attempt(
    replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    stream = Stream(replicator)
    database.execute("INSERT INTO b VALUES (1)")
    token = tmp_path / "token"
    token.touch()
    environment = {ARMED: "seal.before=kill9", TOKEN: str(token)}
    killed = stream.step()
    process = replicator.submit(killed, environment=environment)
    output, _ = process.communicate()
    assert process.returncode != 0, output
    assert not replicator.log.store.exists(f"{killed.folder}/result.json")
    assert replicator.log.sealed() == 0

    again = stream.step()
    process = replicator.submit(again, environment=environment)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert replicator.secrets.source.password not in output
    result = replicator.result(again)
    assert result.window is not None and not result.window.adopted
    assert by_table(result)["public.b"].counts["insert"] == 1
