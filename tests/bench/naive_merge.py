"""The usual hand-written merge: newest event per key by a window function, one MERGE, default settings. For a warehouse
the job ends with files of the newest rows, which the warehouse's own client then loads."""

import json
import os
import time

from pyspark.sql import SparkSession

wanted = json.loads(os.environ["NAIVE"])
EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
began = time.monotonic()
builder = SparkSession.builder.appName("by hand")
if extension := EXTENSIONS.get(wanted["format"]):
    builder = builder.config("spark.sql.extensions", extension)
spark = builder.getOrCreate()
if wanted["format"] == "delta":
    spark.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
for name, value in wanted["settings"].items():
    spark.conf.set(name, value)


def newest(columns: str) -> str:
    """``columns``: names and types, separated by commas."""
    return f"""
        CREATE OR REPLACE TEMP VIEW newest AS
        SELECT row.*, op, coalesce(key, key_before) AS k, order_key FROM (
            SELECT *, from_json(coalesce(after, before), '{columns}') AS row,
                   row_number() OVER (PARTITION BY coalesce(key, key_before) ORDER BY order_key DESC) AS n
            FROM log WHERE op IN ('insert', 'update', 'delete')
        ) WHERE n = 1
    """


def merge() -> float:
    target, copy = spark.table(wanted["target"]), wanted["copy"]
    spark.sql(f"CREATE TABLE {copy} USING {wanted['format']} AS SELECT * FROM {wanted['target']}")
    columns = [c for c in target.columns if not c.startswith("_cdc_")]
    schema = target.select(columns).schema
    started = time.monotonic()
    spark.read.parquet(*wanted["files"]).createOrReplaceTempView("log")
    spark.sql(newest(schema.simpleString()[7:-1].replace(":", " ")))
    names, values = ", ".join(columns), ", ".join("s." + c for c in columns)
    sets = ", ".join(f"t.{c} = s.{c}" for c in columns)
    spark.sql(f"""
        MERGE INTO {copy} t USING (SELECT *, get_json_object(k, '$[0]') AS kid FROM newest) s
        ON t.id = CAST(s.kid AS BIGINT)
        WHEN MATCHED AND s.op = 'delete' THEN DELETE
        WHEN MATCHED THEN UPDATE SET {sets}
        WHEN NOT MATCHED AND s.op <> 'delete' THEN INSERT ({names}) VALUES ({values})
    """)
    return time.monotonic() - started


def write() -> float:
    """With the start of the session, which ours contains, too."""
    spark.read.parquet(*wanted["files"]).createOrReplaceTempView("log")
    spark.sql(newest(wanted["columns"]))
    op = f"if(op = 'delete', 'D', 'U') AS {wanted['op']}"
    key = "CAST(get_json_object(k, '$[0]') AS BIGINT) AS id"
    rows = spark.sql(f"SELECT * EXCEPT (k, order_key, op, id), {key}, {op} FROM newest")
    rows.write.parquet(wanted["target"])
    return time.monotonic() - began


print(f"naive seconds {merge() if wanted['format'] in EXTENSIONS else write():.2f}")
spark.stop()
