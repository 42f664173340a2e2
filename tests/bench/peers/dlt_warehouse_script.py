"""dlt: a copy of a table in PostgreSQL, and changes into that by upsert. Runs in dlt's own environment."""

import json
import os
import time

import dlt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from dlt.sources.sql_database import sql_table

wanted = json.loads(os.environ["WANTED"])
pipeline = dlt.pipeline(
    "peer",
    pipelines_dir=f"{wanted['folder']}/pipelines",
    destination=dlt.destinations.postgres(credentials=wanted["warehouse"]),
    dataset_name="shop",
)
copied = sql_table(credentials=wanted["warehouse"], table=wanted["copied"], schema="shop", backend="pyarrow")
pipeline.run(copied, table_name="by_dlt", primary_key="id", write_disposition="replace", loader_file_format="csv")


@dlt.resource(
    name="by_dlt",
    primary_key="id",
    write_disposition={"disposition": "merge", "strategy": "upsert"},
    columns={"gone": {"hard_delete": True}, "payload": {"data_type": "json"}},
)
def changed():
    rows = pa.concat_tables(pq.read_table(file, columns=[*wanted["columns"], wanted["op"]]) for file in wanted["files"])
    yield rows.drop_columns([wanted["op"]]).append_column("gone", pc.equal(rows[wanted["op"]], "D"))


began = time.monotonic()
pipeline.run(changed(), loader_file_format="csv")
print("answer", json.dumps({"seconds": time.monotonic() - began}))
