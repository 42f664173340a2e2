"""The changes and rows of a table that shares its target table: each key and each image has the value of the shard."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pyarrow as pa

from airflow_cdc_provider.connectors.copied.columns import CopiedTables
from airflow_cdc_provider.connectors.copied.reading import fetch_rows, source_task
from airflow_cdc_provider.connectors.copied.records import CopiedRecords
from airflow_cdc_provider.connectors.source_features import FetchesRows
from airflow_cdc_provider.core.columns.copied import CopiedColumns
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState

SOURCE = TableSchema(
    "eu.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)
RULE = TableRule("eu.t", "t", shard_column="shard", shard_value='"eu"', columns=Columns(rename={"id": "number"}))
COPIED = CopiedColumns(RULE, SOURCE).copied_schema
TASK = TableTask("eu.t", "t", COPIED, RULE, "", TableState.REPLICATING)


def test_keys_and_images_of_changes_have_the_shard() -> None:
    records = CopiedRecords(TASK, b"")
    change = ChangeRecord(
        "eu.t",
        "update",
        "1",
        SOURCE.schema_id,
        key="[2]",
        key_before="[1]",
        before='{"id":1}',
        after='{"id":2,"v":"b"}',
    )
    copied = records.record(change)
    assert [json.loads(text or "") for text in (copied.key_before, copied.key)] == [['"eu"', 1], ['"eu"', 2]]
    assert json.loads(copied.before or "") == {"shard": '"eu"', "number": 1}
    assert json.loads(copied.after or "") == {"shard": '"eu"', "number": 2, "v": "b"}
    truncate = records.record(ChangeRecord("eu.t", "truncate", "2", SOURCE.schema_id))
    assert (truncate.key, truncate.after) == (None, None)


def test_copied_rows_have_the_shard_and_the_source_sees_none_of_it() -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", None]})
    assert CopiedTables(CopiedColumns(RULE, SOURCE)).table(rows).to_pylist() == [
        {"shard": '"eu"', "number": 1, "v": "a"},
        {"shard": '"eu"', "number": 2, "v": None},
    ]
    assert source_task(TASK).schema == SOURCE


class Fetching:
    def fetch(self, task: TableTask, schema: TableSchema, records: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        assert schema == SOURCE
        for record in records:
            (key,) = json.loads(record.key or "")
            row: dict[str, Any] = {"id": key, "v": "fetched"}
            yield ChangeRecord(
                "eu.t", "upsert", record.order_key, schema.schema_id, key=f"[{key}]", after=json.dumps(row)
            )


def test_single_rows_are_fetched_by_the_key_of_the_source() -> None:
    dirty = ChangeRecord("eu.t", "gap", "1", "", key=json.dumps(['"eu"', 7]))
    (row,) = fetch_rows(cast(FetchesRows, Fetching()), TASK, COPIED, [dirty], b"")
    assert json.loads(row.key or "") == ['"eu"', 7]
    assert json.loads(row.after or "") == {"shard": '"eu"', "number": 7, "v": "fetched"}
