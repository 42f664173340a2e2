"""The driver folds a batch exactly as Spark does, or leaves it to Spark."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.merge_plan import DELETED, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.sparksql.types import try_from_text
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.engines import local_fold, spark_fold
from spark_jobs.engines.fold_frame import fold_frame
from spark_jobs.folds import arrow_rows
from tests.model import seeds
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

TYPES = {kind: LogicalType(kind) for kind in Kind} | {Kind.DECIMAL: LogicalType(Kind.DECIMAL, 7, 2)}
SPELLED: dict[Kind, list[str]] = {
    Kind.BOOLEAN: ["true", "false", '"true"', "1", '""'],
    Kind.INT16: ["-32768", "32768", '"5"', "5.0", "1e2", "-0"],
    Kind.INT32: ["2147483647", "2147483648", "null"],
    Kind.INT64: ["-9223372036854775808", "9223372036854775808", '" 7"'],
    Kind.FLOAT32: [
        "0.1", "1e39", "-0.0", "16777217", '"NaN"', "1.17549435e-38", "3.4028236e38", "1e-46",
        "1.00000005960464477539062500000001",
    ],
    Kind.FLOAT64: ["0.1", "-0.0", "5e-324", "1e22", "123456789012345678901", '"Infinity"', '"-Infinity"', "1", "1e400"],
    Kind.DECIMAL: ['"1.5"', '"99999.99"', '"100000"', '"1.005"', '"1e2"', '"-0.00"', '"NaN"', "12", '".5"', '"5."'],
    Kind.TEXT: ['""', '"\\u0000"', '"\\ud83d\\ude00"', '"€ \\\\ \\/ \\""', '"\\ud800"', "5", "1.50", '{"a": 1}'],
    Kind.JSON: ['"{\\"b\\":  [1.0]}"', "[1]"],
    Kind.UUID: ['"0d9c1d3c-9a4f-4d2a-8a44-000000000001"'],
    Kind.BYTES: ['""', '"AA=="', '"AA"', '"A A="', '"/+8="', '"_-8="', '"!!!!"', '"AAAA\\n"'],
    Kind.DATE: ['"2020-02-29"', '"2020-02-30"', '"0001-01-01"', '"9999-12-31"', '"10000-01-01"', '"2020-1-1"'],
    Kind.TIMESTAMP: [
        '"2020-01-01T00:00:00"', '"2020-01-01T00:00:00.5"', '"2020-01-01T00:00:00.1234567"', '"2020-01-01 00:00:00"',
        '"2020-01-01T24:00:00"', '"2020-01-01T00:00:60"', '"2020-01-01"', '"0001-01-01T00:00:00.000001"',
        '"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00+02:00"', '"1582-10-10T00:00:00"',
    ],
    Kind.TIMESTAMPTZ: [
        '"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00.123456Z"', '"2020-01-01T00:00:00"',
        '"2020-01-01T02:00:00+02:00"',
        '"9999-12-31T23:59:59.999999Z"', '"1582-10-10T00:00:00Z"', '"2020-01-01"',
    ],
}  # fmt: skip
KEPT_OF_DELETED = (OP, ORDER, "id", "part")
COLUMNS = tuple(Column(f"c_{kind}", TYPES[kind]) for kind in Kind)
KEY = (Column("id", TYPES[Kind.INT64]), Column("part", TYPES[Kind.TEXT]))
SCHEMA = TableSchema("public.t", (*KEY, *COLUMNS), ("id", "part"))


@pytest.mark.parametrize("kind", list(Kind))
def test_a_value_is_read_as_spark_reads_it_or_not_at_all(spark: SparkSession, kind: Kind) -> None:
    column = Column("v", TYPES[kind])
    schema = TableSchema("public.t", (column,), ("v",))
    images = spark.createDataFrame(list(enumerate(f'{{"v":{text}}}' for text in SPELLED[kind])), "n INT, image STRING")
    texts = ImageColumns(schema, {}).texts(F.col("image"))
    theirs = images.select("n", texts.alias("v")).selectExpr("n", f"{try_from_text('v.v', column.type)} AS theirs")
    read_by_driver = {n: value for n, text in enumerate(SPELLED[kind]) if (value := alone(schema, text)) is not None}
    assert read_by_driver, "the driver reads none"
    ours = pa.table(
        {"n": pa.array(read_by_driver, pa.int32()), "ours": pa.concat_arrays(list(read_by_driver.values()))}
    )
    both = (
        spark.createDataFrame(ours)
        .join(theirs, "n")
        .selectExpr("n", "ours <=> theirs", "string(ours) <=> string(theirs)")
    )
    wrong = [SPELLED[kind][n] for n, same, spelled_the_same in both.collect() if not (same and spelled_the_same)]
    assert not wrong


def alone(schema: TableSchema, text: str) -> pa.Array | None:
    try:
        (values,) = arrow_rows.typed_arrays(pa.chunked_array([[f'{{"v":{text}}}']]), schema)
    except arrow_rows.CONVERSION_ERRORS:
        return None
    return values.combine_chunks()


@pytest.mark.parametrize("on_delete", [OnDelete.HARD, pytest.param(OnDelete.IGNORE, marks=pytest.mark.nightly)])
def test_a_plain_batch_is_staged_as_spark_would_stage_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_delete: OnDelete
) -> None:
    random = Random(seeds.seed())
    table = ScriptedTable(spark, tmp_path, SCHEMA, on_delete)
    table.copy([])
    for size in (random.choice([0, 1]), 150, random.choice([0, 1, 150])):
        records = [change(table, random) for _ in range(size)]
        random.shuffle(records)
        table.land(records)
    ours, files = staged(table)
    assert files == ["part-00000.parquet"], "folded by the driver"
    with monkeypatch.context() as small:
        small.setattr(local_fold, "LOCAL_ROWS", 0)
        small.setattr(local_fold, "PIECE_BYTES", 4000)
        small.setattr(local_fold, "ROWS_PER_FILE", 2)
        in_pieces, files = staged(table)
    assert len(files) > 1, "folded in pieces"
    assert in_pieces == ours, f"again: {seeds.SEED}={seeds.seed()}"
    table.use(EngineMode.SPARK)
    theirs, files = staged(table)
    assert not files[0].startswith("part-00000.parquet"), "folded by Spark"
    assert ours == theirs, f"again: {seeds.SEED}={seeds.seed()}"
    monkeypatch.setattr(
        spark_fold, "fold_frame", lambda *arguments, typed, **more: fold_frame(*arguments, typed=False, **more)
    )
    by_casts, _ = staged(table)
    assert by_casts == theirs, f"again: {seeds.SEED}={seeds.seed()}"


def test_spark_converts_values_that_its_tasks_do_not(spark: SparkSession, tmp_path: Path) -> None:
    schema = TableSchema("public.t", (KEY[0], Column("v", TYPES[Kind.INT64])), ("id",))
    table = ScriptedTable(spark, tmp_path, schema, OnDelete.HARD)
    table.copy([{"id": n, "v": n} for n in (1, 2)])
    table.use(EngineMode.SPARK)
    assert alone(one_of(Kind.INT64), '" 7"') is None
    table.land([table.update({"id": 1, "v": " 7"}), table.delete({"id": 2})])
    assert folded(table) != ["part-00000.parquet"]
    assert table.rows() == [(1, 7)]


def test_a_row_that_is_kept_deleted_is_flagged_with_its_last_values(spark: SparkSession, tmp_path: Path) -> None:
    schema = TableSchema("public.t", (KEY[0], Column("v", TYPES[Kind.TEXT])), ("id",))
    table = ScriptedTable(spark, tmp_path, schema, OnDelete.SOFT)
    table.copy([{"id": n, "v": "old"} for n in (1, 2, 3)])
    table.land([table.delete({"id": 1}), table.update({"id": 2, "v": "new"})])
    assert folded(table) == ["part-00000.parquet"]
    table.land([table.update({"id": 3, "v": "last"}), table.delete({"id": 3})])
    assert folded(table) == ["part-00000.parquet"]
    assert table.rows(DELETED) == [(1, "old", True), (2, "new", False), (3, "last", True)]


def folded(table: ScriptedTable) -> list[str]:
    """Merges the staged rows and returns their files."""
    job, result = table.staged()
    assert result.outcome is Outcome.DONE, result.problem
    assert table.merged(job).outcome is Outcome.DONE
    folder = Path(table.log.store.url(batch_folder("public.t", job.step.attempt)), "rows")
    return [file.name for file in folder.glob("*.parquet")]


def change(table: ScriptedTable, random: Random) -> ChangeRecord:
    usual = {
        kind: [None, *(json.loads(text) for text in SPELLED[kind] if text != "1e400" and alone(one_of(kind), text))]
        for kind in Kind
    }
    row: Row = {"id": random.randrange(9), "part": random.choice(["", "é", "b"])}
    row |= {column.name: random.choice(usual[column.type.kind]) for column in COLUMNS}
    act: Any = random.choice([table.insert, table.update, table.update, table.delete])
    return act(row)  # type: ignore[no-any-return]


def one_of(kind: Kind) -> TableSchema:
    return TableSchema("public.t", (Column("v", TYPES[kind]),), ("v",))


def staged(table: ScriptedTable) -> tuple[dict[tuple[int, str], dict[str, str]], list[str]]:
    """Rows by key, and their files. Of a deleted row only the key is compared."""
    job, result = table.staged()
    assert result.outcome is Outcome.DONE, result.problem
    folder = Path(table.log.store.url(batch_folder("public.t", job.step.attempt)), "rows")
    files = sorted(folder.glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    found = {
        (row["id"], row["part"]): {
            name: repr(value) for name, value in row.items() if row[OP] == LIVE or name in KEPT_OF_DELETED
        }
        for row in rows
    }
    assert len(found) == len(rows)
    return found, [file.name for file in files]
