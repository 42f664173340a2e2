"""Runs a small version of a typical run, so that the JVM loads the classes for the class data archive.

Argument: an empty folder. A crash at any moment is harmless: nothing outside that folder is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, spark_settings
from airflow_cdc_provider.targets.iceberg.ddl import TABLE_PROPERTIES
from spark_jobs.runtime import sessions


def main(folder: Path) -> None:
    lake = next((kind for kind in LAKES if f"/{kind}-spark" in SparkConf().get("spark.driver.extraClassPath", "")), "")
    spark = sessions.new_session(sessions.build_session("cdc-warm-up", [lake]))
    batch = folder / "batch"
    rows = spark.range(1000).selectExpr("id", "cast(id as string) as text", "timestamp_millis(id) as at", "id % 7 as n")
    rows.mapInArrow(unchanged, rows.schema).write.parquet(str(batch))
    ranked = (
        "row_number() over (partition by n order by at desc) as rank",
        "from_json(concat('{\"a\":', id, '}'), 'a bigint').a as a",
    )
    changes = spark.read.parquet(str(batch)).selectExpr("*", *ranked).where("rank <= 50").drop("rank", "a")
    ordered = changes.sortWithinPartitions("id")
    if lake:
        merge(LAKES[lake](folder, ordered), batch, spark)
    else:
        ordered.write.parquet(str(folder / "staged"))
        spark.read.parquet(str(folder / "staged")).toArrow()
    spark.stop()


def merge(table: str, batch: Path, spark: SparkSession) -> None:
    spark.sql(
        f"merge into {table} t using parquet.`{batch}` s on t.id = s.id and t.id between 0 and 2000 "
        "when matched and s.n = 1 then delete when matched then update set text = s.text when not matched then insert *"
    )
    spark.sql(f"select n, count(*), max(at) from {table} group by n").collect()


def delta_table(folder: Path, rows: DataFrame) -> str:
    table = f"delta.`{folder / 'table'}`"
    rows.write.format("delta").save(str(folder / "table"))
    rows.sparkSession.sql(f"alter table {table} set tblproperties (delta.enableDeletionVectors = true)")
    return table


def iceberg_table(folder: Path, rows: DataFrame) -> str:
    for name, value in spark_settings(catalog_location(Target("iceberg", str(folder)), ConnectionInfo())).items():
        rows.sparkSession.conf.set(name, value)
    writer = rows.writeTo("lake.cdc.t").using("iceberg")
    for name, value in TABLE_PROPERTIES.items():
        writer = writer.tableProperty(name, value)
    writer.create()
    return "lake.cdc.t"


LAKES: dict[str, Callable[[Path, DataFrame], str]] = {"iceberg": iceberg_table, "delta": delta_table}
"""By the name of their jar. Without either, the target is a database."""


def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return batches


if __name__ == "__main__":
    main(Path(sys.argv[1]))
