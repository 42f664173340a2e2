"""Verify reports equal tables as identical and names differences, while writers continue."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.spec.definition import (
    Comparison,
    Condition,
    OnDelete,
    OnUnrepresentable,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs import snapshot, verify
from spark_jobs.proofs.target_side import VIEW, open_target_side
from spark_jobs.runtime.job import TableWork
from tests.spark.replicator import Replicator, by_table
from tests.spark.scripted_table import ScriptedTable

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Database = psycopg.Connection[object]

TYPES = {
    "flag": "boolean",
    "small": "smallint",
    "big": "bigint",
    "f4": "real",
    "f8": "double precision",
    "price": "numeric(12,4)",
    "tiny": "numeric(38,20)",
    "free": "numeric",
    "note": "text",
    "padded": "char(8)",
    "doc": "jsonb",
    "raw": "bytea",
    "id2": "uuid",
    "day": "date",
    "at": "timestamp",
    "atz": "timestamptz",
    "clock": "time",
    "span": "interval",
    "list": "int[]",
    "bag": "int4range",
    "cash": "money",
}
FULL = (
    "true, -32768, 9223372036854775807, '1e-45', '1.7976931348623157e308', 12345678.9012,"
    """ '0.00000000000000000001', 'NaN', 'naïve \\ "quoted" 🎉', 'ab', '{"b": 1, "a": [null, 2.50]}', '\\x00ff',"""
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-02-29', '2024-02-29 12:34:56.123456', '2024-02-29 12:34:56.1+03',"
    " '24:00', '1 year -3 days 04:05:06',"
    " '{1,NULL,3}', '[1,5)', '-12.34'",
    "false, 0, -9223372036854775808, '-0', 'NaN', -0.0001, 'NaN', 1e30, '', '', 'null', '',"
    " '00000000-0000-0000-0000-000000000000', 'infinity', '-infinity', 'infinity', '00:00', '-1 month', '{}',"
    " 'empty', 0",
    "true, 1, 0, '-Infinity', '-0', 0, -1, '0.10', E'tab\\there', 'x y', '\"text\"', '\\x',"
    " 'ffffffff-ffff-ffff-ffff-ffffffffffff', '0044-03-15 BC', '0044-03-15 BC', '12024-01-01', '12:00:00.5',"
    " '00:00:00.000001', '{{1,2},{3,4}}', '(,)', 1",
    ", ".join(["NULL"] * len(TYPES)),
)
"""Plain values, the limits of the ranges, and NULLs, in the order of the columns."""


def values(key: int, row: str) -> str:
    return f"({key}, {row})"


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.nightly)])
def replicator(
    tmp_path: Path, database: Database, connection: ConnectionInfo, request: pytest.FixtureRequest
) -> Replicator:
    return build_replicator(tmp_path, database, connection, target=Target(request.param, str(tmp_path / "lake")))


def build_replicator(tmp_path: Path, database: Database, connection: ConnectionInfo, **location: Any) -> Replicator:
    """Tables of every type and rule, and their replicator, with ``location`` for its staging and target."""
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    database.execute(f"CREATE TABLE kinds (k int PRIMARY KEY, {columns})")
    database.execute(f"INSERT INTO kinds VALUES {', '.join(values(k, row) for k, row in enumerate(FULL))}")
    database.execute("CREATE TABLE soft (a int, b text, v text, PRIMARY KEY (a, b))")
    database.execute("INSERT INTO soft SELECT n, 'b' || n, 'v' FROM generate_series(1, 50) n")
    database.execute("CREATE TABLE bare (v text, f real)")
    database.execute("ALTER TABLE bare REPLICA IDENTITY FULL")
    database.execute("INSERT INTO bare SELECT 'v' || n % 3, n % 2 FROM generate_series(1, 30) n")
    database.execute("CREATE TABLE heap (v text)")
    database.execute("ALTER TABLE heap REPLICA IDENTITY FULL")
    database.execute("INSERT INTO heap VALUES ('a'), ('a'), ('a'), ('b'), (NULL)")
    database.execute("CREATE TABLE part (id int PRIMARY KEY, kept bool)")
    database.execute("ALTER TABLE part REPLICA IDENTITY FULL")
    database.execute("INSERT INTO part SELECT n, n % 2 = 0 FROM generate_series(1, 20) n")
    database.execute("CREATE TABLE late (id int PRIMARY KEY DEFERRABLE, v text)")
    database.execute("ALTER TABLE late REPLICA IDENTITY FULL")
    database.execute("INSERT INTO late SELECT n, 'v' || n FROM generate_series(1, 9) n")
    name = f"ver{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE kinds, soft, bare, heap, part, late")
    rules = [
        TableRule("public.kinds", on_unrepresentable=OnUnrepresentable.SET_NULL),
        TableRule("public.soft", on_delete=OnDelete.SOFT),
        TableRule("public.bare"),
        TableRule("public.late", key=("id",)),
        TableRule("public.heap", on_delete=OnDelete.IGNORE),
        TableRule("public.part", where=(Condition("kept", Comparison.EQUAL, True),), on_delete=OnDelete.IGNORE),
    ]
    return Replicator(tmp_path, name, connection, rules, **location)


def copied(replicator: Replicator) -> dict[str, str]:
    """Copies all tables; returns the position of the first window."""
    tables = [rule.source for rule in replicator.definition.tables]
    lo = dict(replicator.source.open_stream(tables))
    result = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run))
    assert {one.outcome for one in result.values()} == {Outcome.DONE}, result
    return lo


def verified(replicator: Replicator, lo: dict[str, str]) -> dict[str, TableResult]:
    step = replicator.step(StepKind.VERIFY, window=replicator.log.sealed() + 1, lo=lo)
    return by_table(replicator.run(step, verify.run))


def change(database: Database) -> None:
    database.execute(f"INSERT INTO kinds VALUES {', '.join(values(k + 10, row) for k, row in enumerate(FULL))}")
    database.execute("UPDATE kinds SET k = k + 100 WHERE k < 2")
    database.execute("DELETE FROM soft WHERE a % 5 = 0")
    database.execute("UPDATE soft SET a = a + 100 WHERE a % 7 = 1")
    database.execute("UPDATE bare SET f = f + 1 WHERE ctid IN (SELECT ctid FROM bare WHERE v = 'v1' LIMIT 3)")
    database.execute("DELETE FROM bare WHERE ctid IN (SELECT ctid FROM bare WHERE v = 'v2' LIMIT 2)")
    database.execute("DELETE FROM heap WHERE ctid = (SELECT min(ctid) FROM heap WHERE v = 'a') OR v IS NULL")
    database.execute("UPDATE heap SET v = 'c' WHERE v = 'b'")
    database.execute("UPDATE late SET id = 10 - id")
    database.execute("UPDATE late SET id = id + 1")
    database.execute("DELETE FROM part WHERE id = 2")
    database.execute("UPDATE part SET kept = NOT kept WHERE id > 16")


def test_copies_of_every_type_are_verified_while_writers_continue_and_differences_are_named(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    lo = copied(replicator)
    change(database)

    stop = threading.Event()
    writing = threading.Thread(target=_write, args=(database.info.dsn + " password=" + database.info.password, stop))
    writing.start()
    try:
        result = verified(replicator, lo)
    finally:
        stop.set()
        writing.join()
    assert {name: one.problem for name, one in result.items()} == dict.fromkeys(result)
    wrong = {name: [c for c, same in one.detail["columns"].items() if not same] for name, one in result.items()}
    assert wrong == {f"public.{name}": [] for name in ("kinds", "soft", "bare", "heap", "part", "late")}
    assert all(one.detail["identical"] for one in result.values())
    heap = result["public.heap"].detail
    assert (heap["source_rows"], heap["target_rows"]) == (3, 5), "the target keeps what the source deleted"

    spoil = replicator.foreign_session(spark).sql
    spoil(f"UPDATE {replicator.named('kinds')} SET note = 'changed' WHERE k = 12")
    spoil(f"DELETE FROM {replicator.named('soft')} WHERE a = 3")
    spoil(f"INSERT INTO {replicator.named('bare')} VALUES ('v0', 0.5)")
    spoil(f"DELETE FROM {replicator.named('heap')} WHERE v = 'a'")
    spoil(f"INSERT INTO {replicator.named('heap')} VALUES ('a')")
    database.execute("ALTER TABLE part ADD COLUMN later int")
    database.execute("ALTER TABLE soft ADD COLUMN later int DEFAULT 5")
    hi = replicator.log.manifest(replicator.log.sealed()).hi
    result = verified(replicator, hi)
    kinds, soft, bare = (result[f"public.{name}"].detail for name in ("kinds", "soft", "bare"))
    assert [name for name, same in kinds["columns"].items() if not same] == ["note"]
    assert (kinds["differences"], kinds["identical"]) == (["12"], False)
    assert soft["source_rows"] == soft["target_rows"] + 1 and not soft["columns"]["later"]
    assert bare["target_rows"] == bare["source_rows"] + 1 and len(bare["differences"]) == 1
    assert (result["public.heap"].detail["differences"], result["public.heap"].detail["identical"]) == (["a"], False)
    assert result["public.part"].detail["identical"]


@pytest.mark.nightly
def test_tables_that_are_not_compared_apply_the_windows_of_a_comparison(
    replicator: Replicator, database: Database
) -> None:
    lo = copied(replicator)
    change(database)
    tables = {"compare": ("public.kinds",), "catch_up": ("public.soft",)}
    step = replicator.step(StepKind.VERIFY, window=replicator.log.sealed() + 1, lo=lo, **tables)
    result = by_table(replicator.run(step, verify.run))
    assert result.keys() == {"public.kinds", "public.soft"}
    assert result["public.kinds"].detail["identical"]
    assert (result["public.soft"].outcome, result["public.soft"].window) == (Outcome.DONE, replicator.log.sealed())


def test_a_new_column_that_no_change_has_announced_has_no_values_of_a_former_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The target still has the former one under that name."""
    key, new = Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.INT32))
    table = ScriptedTable(spark, tmp_path, TableSchema("public.t", (key, new), ("id",)))
    table.copy([{"id": 1, "v": 7}])
    current, without = table.target_state(), replace(table.schema, columns=(key,))
    assert current.control is not None
    record = table.job_tables().fence("t", current, current.control.fenced(schema=without))
    job, work = table.job(StepKind.VERIFY, (table.task(),)), TableWork(table.task(), lambda: spark)
    copy = Copy("", {}, table.schema, SplitRead((), 0), 1)
    source: Any = SimpleNamespace(hash=None)
    open_target_side(job, work, copy, source, table.schema, record, None)
    assert list(map(tuple, spark.table(VIEW).select("id", "v").collect())) == [(1, None)]


def _write(dsn: str, stop: threading.Event) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        number = 1000
        while not stop.is_set():
            number += 1
            connection.execute("INSERT INTO soft VALUES (%s, 'w', 'w')", [number])
            connection.execute("UPDATE soft SET v = %s WHERE a = %s", [str(number), number])
            connection.execute("INSERT INTO bare VALUES ('w', 1)")
            connection.execute("DELETE FROM soft WHERE a = %s", [number - 20])
            stop.wait(0.02)
