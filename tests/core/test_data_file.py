"""The statistics of a data file of Delta."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.local_engine.data_file import write_rows


def test_a_copy_has_no_statistics_of_columns_that_only_others_in_its_table_have(tmp_path: Path) -> None:
    add = write_rows(LocalStore(str(tmp_path)), "t", pa.table({"id": [1, 2]}), ["id", "of_another"])
    assert json.loads(add["stats"])["nullCount"] == {"id": 0}
