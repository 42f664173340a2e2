"""delta-rs: changes into a Delta table by its MERGE. Runs in its own environment."""

import json
import os
import time

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

wanted = json.loads(os.environ["WANTED"])
write_deltalake(wanted["table"], pq.read_table(wanted["rows"]))
began = time.monotonic()
(
    DeltaTable(wanted["table"])
    .merge(pq.read_table(wanted["changes"]), "t.id = s.id", source_alias="s", target_alias="t")
    .when_matched_delete("s.gone")
    .when_matched_update({name: f"s.{name}" for name in wanted["columns"]})
    .when_not_matched_insert({name: f"s.{name}" for name in wanted["columns"]}, "not s.gone")
    .execute()
)
print("answer", json.dumps({"seconds": time.monotonic() - began}))
