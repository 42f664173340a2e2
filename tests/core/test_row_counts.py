"""The number of rows of a Delta table, from its log alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.target import TargetState


def test_rows_are_counted_without_reading_them(tmp_path: Path) -> None:
    log = ChangeLog(LocalStore(str(tmp_path / "staging")))
    target = DeltaTarget(Target("delta", str(tmp_path)), ConnectionInfo(), "shop", log)
    write_deltalake(str(tmp_path / "t"), pa.table({"id": list(range(10))}))
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [10, 11]}), mode="append")
    assert target.row_count("t", TargetState(exists=True)) == 12
    DeltaTable(str(tmp_path / "t")).delete("id >= 5")
    assert target.row_count("t", TargetState(exists=True)) == 5
    DeltaTable(str(tmp_path / "t")).create_checkpoint()
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [12]}), mode="append")
    assert target.row_count("t", TargetState(exists=True)) == 6
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    assert target.row_count("t", TargetState(exists=True)) == 6, "its data files are not read"


def test_rows_in_a_deletion_vector_do_not_count() -> None:
    add = {"path": "f", "stats": json.dumps({"numRecords": 10}), "deletionVector": {"cardinality": 3}}
    assert ActiveFile(add).live_rows == 7
    assert ActiveFile({"path": "f"}).live_rows is None, "the log does not contain the count"
