"""dlt: a table of PostgreSQL into Delta, and changes into that by upsert. Runs in dlt's own environment."""

import json
import os
import time

import dlt
import pyarrow.parquet as pq
from dlt.sources.sql_database import sql_table

wanted = json.loads(os.environ["WANTED"])
pipeline = dlt.pipeline(
    "peer",
    pipelines_dir=f"{wanted['folder']}/pipelines",
    destination=dlt.destinations.filesystem(bucket_url=wanted["folder"]),
    dataset_name="lake",
)
items = sql_table(credentials=wanted["dsn"], table="items", schema="public", backend="pyarrow")
pipeline.run(items, table_format="delta", write_disposition="replace")

took = 0.0
if wanted["changes"]:

    @dlt.resource(
        name="items",
        primary_key="id",
        table_format="delta",
        write_disposition={"disposition": "merge", "strategy": "upsert"},
        columns={"gone": {"hard_delete": True}},
    )
    def changed():
        yield pq.read_table(wanted["changes"])

    began = time.monotonic()
    pipeline.run(changed())
    took = time.monotonic() - began
print("answer", json.dumps({"seconds": took}))
