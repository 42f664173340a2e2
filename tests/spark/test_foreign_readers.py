"""Delta tables that the driver commits to, as other libraries read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import duckdb_ext
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, OP, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel
from airflow_cdc_provider.targets.delta.local_engine.copy import (
    existing_table,
    file_layout,
    new_table,
    prepare_copy,
    write_files,
)
from airflow_cdc_provider.targets.delta.local_engine.merge import prepare_merge
from tests.delta_tables import read
from tests.model import seeds
from tests.spark.merged_table import MergedTable

pytestmark = [pytest.mark.jvm, pytest.mark.nightly]

Read = Callable[[SparkSession, str], pa.Table]


def read_with_duckdb(_: SparkSession, path: str) -> pa.Table:
    """The extension comes as a package: DuckDB downloads nothing."""
    (folder,) = duckdb_ext.__path__
    (extension,) = Path(folder).rglob("delta.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"SET TimeZone = 'UTC'; LOAD '{extension}'")
        return connection.execute("SELECT * FROM delta_scan($path)", {"path": path}).fetch_arrow_table()


READERS: dict[str, Read] = {
    "deltalake": lambda _, path: read(DeltaTable(path)),
    "Polars": lambda _, path: polars.read_delta(path).to_arrow(),
    "DuckDB": read_with_duckdb,
    "Spark": lambda spark, path: spark.read.format("delta").load(path).toArrow(),
}
COLUMNS = pa.schema([("v", pa.string()), ("n", pa.int32())])
DELTA_COLUMNS = (("v", "string"), ("n", "integer"))
PROPERTIES = {"delta.enableDeletionVectors": "true"}


@pytest.mark.parametrize("key", [("number",), ("text", "moment"), ("price", "maybe"), ("day", "bytes", "flag")])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_rows_are_those_of_the_model_after_every_merge(
    spark: SparkSession, tmp_path: Path, key: tuple[str, ...], soft: bool
) -> None:
    random = Random(f"{seeds.seed()} {key} {soft}")
    print(f"again: {seeds.SEED}={seeds.seed()}")
    table = MergedTable(spark, tmp_path, key, soft)
    table.create([table.row(random, number, number) for number in range(120)], checkpointInterval="4")
    for turn in range(6):
        numbers = random.sample(range(160), random.choice([1, 40, 150]))
        table.merge(table.staged(random, numbers, 160 + 80 * turn, partial=turn % 2 == 1))
        expected = {key: {**row} for key, row in table.model.items()}
        for name, reader in READERS.items():
            rows = reader(spark, table.path)
            found = rows.select(rows.column_names).cast(table.frame().limit(0).toArrow().schema).to_pylist()
            assert {table.key_of(row): row for row in found} == expected, name
            assert len(found) == len(expected), name


def test_equal_rows_are_counted_alike_after_copies_and_merges(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(seeds.seed())
    print(f"again: {seeds.SEED}={seeds.seed()}")
    store, path = LocalStore(str(tmp_path)), str(tmp_path / "t")
    schema = TableSchema("t", (Column("v", LogicalType(Kind.TEXT)), Column("n", LogicalType(Kind.INT32))))
    plan, token, expected = MergePlan(schema, OnDelete.HARD), 0, Counter[tuple[Any, ...]]()
    for copy in range(2):
        rows = [row(random) for _ in range(300)]
        replaced = (
            existing_table(store, "t", DELTA_COLUMNS, PROPERTIES) if copy else new_table(DELTA_COLUMNS, PROPERTIES)
        )
        adds = write_files(store, "t", [as_table(rows)], file_layout(replaced, (), ()))
        token, expected = token + 1, Counter(rows)
        assert prepare_copy(store, "t", replaced, adds, len(rows), CommitLabel("app", token, "{}")).commit()
        for _ in range(4):
            gone = random.sample(sorted(expected, key=str), 3)
            copies = [row(random) for _ in range(5)]
            staged = as_table([*gone, *copies]).append_column(OP, pa.array([GONE] * 3 + [COPY] * 5))
            token += 1
            assert prepare_merge(store, "t", staged, plan, CommitLabel("app", token, "{}")).commit()
            for one in gone:
                del expected[one]
            expected.update(copies)
            for name, reader in READERS.items():
                found = reader(spark, path).select(COLUMNS.names).to_pylist()
                assert Counter(tuple(one.values()) for one in found) == expected, name


def row(random: Random) -> tuple[Any, ...]:
    return random.choice(["a", "b", "", None]), random.choice([1, 2, 3, None])


def as_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, one, strict=True)) for one in rows], COLUMNS)
