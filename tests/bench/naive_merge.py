"""The usual hand-written merge: newest event per key by a window function, one MERGE, default settings."""

import json
import os
import time

from pyspark.sql import SparkSession

wanted = json.loads(os.environ["NAIVE"])
spark = (
    SparkSession.builder.appName("by hand")
    .config(
        "spark.sql.extensions",
        "io.delta.sql.DeltaSparkSessionExtension"
        if wanted["format"] == "delta"
        else "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    .getOrCreate()
)
if wanted["format"] == "delta":
    spark.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
for name, value in wanted["settings"].items():
    spark.conf.set(name, value)
target, copy = spark.table(wanted["target"]), wanted["copy"]
spark.sql(f"CREATE TABLE {copy} USING {wanted['format']} AS SELECT * FROM {wanted['target']}")
columns = [c for c in target.columns if not c.startswith("_cdc_")]
schema = target.select(columns).schema

started = time.monotonic()
spark.read.parquet(*wanted["files"]).createOrReplaceTempView("log")
spark.sql(f"""
    CREATE OR REPLACE TEMP VIEW newest AS
    SELECT row.*, op, coalesce(key, key_before) AS k, order_key FROM (
        SELECT *, from_json(coalesce(after, before), '{schema.simpleString()[7:-1].replace(":", " ")}') AS row,
               row_number() OVER (PARTITION BY coalesce(key, key_before) ORDER BY order_key DESC) AS n
        FROM log WHERE op IN ('insert', 'update', 'delete')
    ) WHERE n = 1
""")
names, values = ", ".join(columns), ", ".join("s." + c for c in columns)
sets = ", ".join(f"t.{c} = s.{c}" for c in columns)
spark.sql(f"""
    MERGE INTO {copy} t USING (SELECT *, get_json_object(k, '$[0]') AS kid FROM newest) s
    ON t.id = CAST(s.kid AS BIGINT)
    WHEN MATCHED AND s.op = 'delete' THEN DELETE
    WHEN MATCHED THEN UPDATE SET {sets}
    WHEN NOT MATCHED AND s.op <> 'delete' THEN INSERT ({names}) VALUES ({values})
""")
print(f"naive seconds {time.monotonic() - started:.2f}")
spark.stop()
