"""A first copy is exact, commits once together with its cursor, and is made once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.sources.postgres import copy as parts
from airflow_cdc_provider.connectors.sources.postgres import source
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.splits import read_split
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult
from airflow_cdc_provider.core.errors import SourceUnreachable
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, OnDelete, TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs import snapshot
from spark_jobs.copies.split_reads import read_splits
from spark_jobs.runtime.remote_errors import from_remote_failure
from tests.spark.replicator import Replicator, by_table

Database = psycopg.Connection[object]


@pytest.fixture
def replicator(tmp_path: Path, database: Database, connection: ConnectionInfo) -> Replicator:
    database.execute("CREATE TABLE a (id int PRIMARY KEY, note text)")
    database.execute("INSERT INTO a SELECT n, 'note ' || n FROM generate_series(1, 5000) n")
    database.execute("CREATE TABLE keyless (n int, t text)")
    database.execute("ALTER TABLE keyless REPLICA IDENTITY FULL")
    database.execute("INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    name = f"snap{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE a, keyless")
    rules = [TableRule("public.a", on_delete=OnDelete.SOFT), TableRule("public.keyless")]
    return Replicator(tmp_path, name, connection, rules)


def copy(replicator: Replicator, *tables: str) -> StepResult:
    return replicator.run(replicator.step(StepKind.SNAPSHOT, replicator.tasks(*tables)), snapshot.run)


def test_a_copy_has_every_row_at_its_floor_and_records_its_position(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    result = by_table(copy(replicator))
    assert {(table.outcome, table.rows) for table in result.values()} == {(Outcome.DONE, 5000), (Outcome.DONE, 3)}

    task, keyless = replicator.tasks()
    assert task.control is not None and keyless.control is not None
    assert (task.control.state.name, task.control.window) == (TableState.REPLICATING, 0)
    assert task.control.schema == task.schema
    rows = replicator.copied(spark, task)
    assert rows.columns == ["id", "note", "_cdc_order", "_cdc_deleted"]
    assert rows.select("_cdc_order", "_cdc_deleted").distinct().collect() == [(task.control.floor, False)]
    assert rows.selectExpr("count(DISTINCT id)", "min(id)", "max(id)").first() == (5000, 1, 5000)
    assert rows.where("note = 'note ' || id").count() == 5000
    assert sorted(map(tuple, replicator.copied(spark, keyless).collect()), key=str) == [(1, "x"), (1, "x"), (2, None)]


def test_a_table_that_is_emptied_during_its_copy_is_copied_anew_by_the_next_attempt(
    replicator: Replicator, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def truncated_first(client: PostgresClient, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        database.execute("TRUNCATE a")
        return read_split(client, split, schema)

    monkeypatch.setattr(source, "read_split", truncated_first)
    failed = by_table(copy(replicator, "public.a"))["public.a"]
    assert failed.outcome is Outcome.FAILING and failed.problem is not None
    assert (failed.problem.code, failed.problem.where) == ("CPY008", "public.a")
    monkeypatch.undo()
    assert by_table(copy(replicator, "public.a"))["public.a"].rows == 0


def test_another_source_than_that_of_the_run_is_not_copied(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = replicator.step(StepKind.SNAPSHOT, replicator.tasks("public.a"))
    step = replace(step, source_identity={"system_identifier": "8"})
    assert codes(replicator.run(step, snapshot.run)) == ["SRC010"]
    (task,) = replicator.tasks("public.a")
    assert task.control is None

    identity, seen = source.PostgresSource.identity, list[bool]()

    def promoted(client: PostgresClient, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        yield from read_split(client, split, schema)
        seen.append(True)

    def then(connector: source.PostgresSource) -> dict[str, str]:
        return identity(connector) | ({"timeline": "9"} if seen else {})

    monkeypatch.setattr(source, "read_split", promoted)
    monkeypatch.setattr(source.PostgresSource, "identity", then)
    assert codes(copy(replicator, "public.a")) == ["SRC010"], "the name leads to another server since"
    (task,) = replicator.tasks("public.a")
    assert task.control is None


def codes(result: StepResult) -> list[str]:
    """Of what a retry helps."""
    tables = [one.problem for one in result.tables if one.problem and one.outcome is Outcome.FAILING]
    return [one.code for one in (result.problem if result.retryable else None, *tables) if one]


def test_executors_read_the_source_of_the_run_alone(spark: SparkSession, replicator: Replicator) -> None:
    (task,) = replicator.tasks("public.a")
    step = replicator.step(StepKind.RESYNC, (task,))
    with replicator.source.copy(task, 1, {}, 1) as opened:
        read = partial(read_splits, spark, splits=opened.read.splits, schema=opened.schema, rule=task.rule)
        assert read(step, replicator.secrets).count() == 5000
        step = replace(step, source_identity={"system_identifier": "8"})
        with pytest.raises(SourceUnreachable, match="SRC010"), from_remote_failure():
            read(step, replicator.secrets).count()


def test_a_copy_contains_no_commit_made_while_it_runs(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(database.info.dsn, password=database.info.password, autocommit=True) as writer:
            number = 10_000
            while not stop.is_set():
                number += 1
                with writer.transaction():
                    writer.execute("INSERT INTO a VALUES (%s, 'late')", [number])
                    writer.execute("DELETE FROM a WHERE id = (SELECT min(id) FROM a)")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        result = by_table(copy(replicator, "public.a"))
    finally:
        stop.set()
        thread.join()
    assert result["public.a"].rows == 5000, "each transaction takes one row and brings one"


def test_a_large_table_is_copied_by_several_processes(
    spark: SparkSession, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "ONE_PART_BYTES", 0)
    result = copy(replicator, "public.a")
    assert by_table(result)["public.a"].rows == 5000
    rows = replicator.copied(spark, replicator.tasks("public.a")[0])
    assert rows.selectExpr("count(DISTINCT id)", "min(id)", "max(id)").first() == (5000, 1, 5000)
    assert len(rows.inputFiles()) > 1


def test_where_a_copy_is_not_exact_its_record_is_made_when_the_rows_have_been_read(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window that makes such a copy exact must begin after the read."""
    order: list[str] = []
    build_control_record = snapshot.build_control_record

    def read(client: PostgresClient, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        yield from read_split(client, split, schema)
        order.append("read")

    def recorded(*given: Any) -> ControlRecord:
        order.append("recorded")
        return build_control_record(*given)

    monkeypatch.setattr(source, "read_split", read)
    monkeypatch.setattr(source.PostgresSource, "exact_snapshot", False)
    monkeypatch.setattr(snapshot, "build_control_record", recorded)
    assert by_table(copy(replicator, "public.a"))["public.a"].rows == 5000
    assert order == ["read", "recorded"]
    (task,) = replicator.tasks("public.a")
    assert task.control is not None and task.control.high == 2


def test_an_existing_copy_is_left_unchanged(spark: SparkSession, replicator: Replicator) -> None:
    pending = replicator.tasks()
    copy(replicator)
    current = replicator.target.state("public.a", "a")
    again = replicator.run(replicator.step(StepKind.SNAPSHOT, pending), snapshot.run)
    assert {table.outcome for table in again.tables} == {Outcome.UNCHANGED}
    assert replicator.target.state("public.a", "a") == current


def test_a_foreign_table_is_never_overwritten(spark: SparkSession, replicator: Replicator) -> None:
    import pyarrow as pa

    write_deltalake(replicator.target.locate("a"), pa.table({"theirs": [1]}))
    result = by_table(copy(replicator))
    assert result["public.a"].outcome is Outcome.BLOCKED
    assert result["public.a"].problem is not None
    assert "belongs to another owner" in result["public.a"].problem.what
    assert result["public.keyless"].outcome is Outcome.DONE
    assert replicator.copied(spark, replicator.tasks()[0]).columns == ["theirs"]


def test_an_attempt_that_fails_before_its_commit_is_followed_by_one_with_a_higher_fence(
    spark: SparkSession, replicator: Replicator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch()
    monkeypatch.setenv(TOKEN, str(token))
    monkeypatch.setenv(ARMED, "copy.before_commit=raise:TargetUnavailable")
    failed = by_table(copy(replicator, "public.a"))
    assert failed["public.a"].outcome is Outcome.FAILING
    assert not replicator.target.state("public.a", "a").exists
    done = by_table(copy(replicator, "public.a"))
    assert (done["public.a"].outcome, done["public.a"].fence) == (Outcome.DONE, 2)


def test_a_copy_whose_files_were_removed_before_its_commit_is_not_committed(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without a version is a folder of loose files for the clean-ups of a lake."""
    claim_fence = ChangeLog.claim_fence

    def cleaned_up(log: ChangeLog, record: ControlRecord) -> bool:
        for file in Path(replicator.target.locate("a")).glob("*.parquet"):
            file.unlink()
        return claim_fence(log, record)

    monkeypatch.setattr(ChangeLog, "claim_fence", cleaned_up)
    failed = by_table(copy(replicator, "public.a"))["public.a"]
    assert failed.outcome is Outcome.FAILING and failed.problem is not None and failed.problem.code == "CPY005"
    assert not replicator.target.state("public.a", "a").exists
    monkeypatch.undo()
    assert by_table(copy(replicator, "public.a"))["public.a"].rows == 5000


def test_one_of_two_concurrent_copies_is_fenced(
    spark: SparkSession, replicator: Replicator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch()
    go = tmp_path / "go"
    monkeypatch.setenv(TOKEN, str(token))
    monkeypatch.setenv(ARMED, f"copy.before_commit=stop:{go}")
    slow: list[StepResult] = []
    step = replicator.step(StepKind.SNAPSHOT, replicator.tasks("public.a"))
    thread = threading.Thread(target=lambda: slow.append(replicator.run(step, snapshot.run)))
    thread.start()
    while token.exists() and thread.is_alive():
        thread.join(0.05)
    assert thread.is_alive()
    quick = by_table(copy(replicator, "public.a"))
    current = replicator.target.state("public.a", "a")
    go.touch()
    thread.join()
    assert quick["public.a"].outcome is Outcome.DONE
    assert by_table(slow[0])["public.a"].outcome is Outcome.FENCED
    assert replicator.target.state("public.a", "a") == current


def test_rows_and_columns_left_out_do_not_reach_the_target(
    spark: SparkSession, replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    database.execute("ALTER TABLE a REPLICA IDENTITY FULL")
    rule = TableRule("public.a", where=(Condition("id", Comparison.LESS_OR_EQUAL, 10),))
    narrow = Replicator(tmp_path / "narrow", replicator.definition.name, replicator.secrets.source, [rule])
    assert by_table(copy(narrow))["public.a"].rows == 10


def test_an_empty_table_is_copied(spark: SparkSession, replicator: Replicator, database: Database) -> None:
    database.execute("TRUNCATE a")
    assert by_table(copy(replicator, "public.a"))["public.a"].outcome is Outcome.DONE
    assert replicator.copied(spark, replicator.tasks("public.a")[0]).count() == 0


def test_a_partitioned_table_is_copied_whole(
    spark: SparkSession, replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    for low in (0, 1000):
        database.execute(f"CREATE TABLE p{low} PARTITION OF p FOR VALUES FROM ({low}) TO ({low + 1000})")
    database.execute("INSERT INTO p SELECT generate_series(0, 1999)")
    whole = Replicator(tmp_path / "p", "parts", replicator.secrets.source, [TableRule("public.p")])
    database.execute("CREATE PUBLICATION parts FOR TABLE p WITH (publish_via_partition_root)")
    assert by_table(copy(whole))["public.p"].rows == 2000


TYPES = {
    "b boolean": ("true", "BOOLEAN", True),
    "i2 int2": ("-32768", "SMALLINT", -32768),
    "i4 int4": ("2147483647", "INT", 2147483647),
    "i8 int8": ("-9223372036854775808", "BIGINT", -(2**63)),
    "f8 float8": ("0.1", "DOUBLE", 0.1),
    "d numeric(28,8)": ("123456789012345678.01234567", "DECIMAL(28,8)", Decimal("123456789012345678.01234567")),
    "u numeric": ("'NaN'", "STRING", "NaN"),
    "t text": ("'Grüße 🙂'", "STRING", "Grüße 🙂"),
    "c char(5)": ("'ab'", "STRING", "ab   "),
    "j jsonb": ("""'{"b": 1, "a": [1.50]}'""", "STRING", '{"a": [1.50], "b": 1}'),
    "g uuid": ("'00000000-0000-0000-0000-00000000000a'", "STRING", "00000000-0000-0000-0000-00000000000a"),
    "y bytea": (r"'\x00ff'", "BINARY", bytearray(b"\x00\xff")),
    "da date": ("'1582-10-10'", "DATE", date(1582, 10, 10)),
    "ts timestamp": ("'2024-03-31 02:30:00.000001'", "TIMESTAMP_NTZ", datetime(2024, 3, 31, 2, 30, 0, 1)),
    "tz timestamptz": ("'2024-03-31 02:30:00+02'", "TIMESTAMP", datetime(2024, 3, 31, 0, 30, tzinfo=UTC)),
    "ti time": ("'24:00:00'", "STRING", "24:00:00"),
    "iv interval": ("'1 year 2 days'", "STRING", "P1Y2D"),
    "ar int[]": ("'{1,NULL,3}'", "STRING", "{1,NULL,3}"),
    "ra int4range": ("'[1,5)'", "STRING", "[1,5)"),
    "mo money": ("12.5", "STRING", "$12.50"),
    "ip inet": ("'10.0.0.1'", "STRING", "10.0.0.1"),
    "nu int": ("NULL", "INT", None),
}  # fmt: skip


def test_every_type_arrives_as_the_target_should_hold_it(
    spark: SparkSession, replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    database.execute(f"CREATE TABLE types (id int PRIMARY KEY, {', '.join(TYPES)})")
    database.execute(f"INSERT INTO types VALUES (1, {', '.join(value for value, _, _ in TYPES.values())})")
    database.execute("CREATE PUBLICATION types FOR TABLE types")
    typed = Replicator(tmp_path / "types", "types", replicator.secrets.source, [TableRule("public.types")])
    assert by_table(copy(typed))["public.types"].outcome is Outcome.DONE
    frame = typed.copied(spark, typed.tasks()[0])
    spark_types = {field.name: field.dataType.simpleString().upper() for field in frame.schema.fields}
    # As epoch seconds: Python's own reading of a TIMESTAMP would depend on the machine's zone.
    row = frame.selectExpr("* EXCEPT (tz)", "unix_micros(tz) AS tz").first()
    assert row is not None
    for declared, (_, kind, value) in TYPES.items():
        name = declared.split()[0]
        assert spark_types[name] == kind, name
        expected = int(value.timestamp() * 10**6) if name == "tz" else value
        assert row[name] == expected, name
