"""The files of the change log that a table has not applied yet, and their contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.core.log.change_log import DataFile, TableSlice
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, FIELDS, Operation
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.batches.schema_evolution import WindowSchemas

HASHED_BYTES = 64 * 1024 * 1024
"""Larger files are checked by their number of rows only: hashing requires reading them twice."""

FIELD_TYPES = {
    "before_complete": "BOOLEAN",
    "after_complete": "BOOLEAN",
    "refetch": "ARRAY<STRING>",
    "phase": "TINYINT",
    "tx_seq": "BIGINT",
    "commit_ts": "TIMESTAMP",
    "warnings": "ARRAY<STRING>",
}
RECORD_COLUMNS = ", ".join(f"{quoted(name)} {FIELD_TYPES.get(name, 'STRING')}" for name in FIELDS)
INITIAL_UNKNOWN = "initial_unknown"


@dataclass(frozen=True)
class WindowSlice:
    """The records of the table in one window."""

    window: int
    part: TableSlice


def windows_between(log: ChangeLog, table: str, after: int, upto: int) -> list[WindowSlice]:
    """The windows in ``(after, upto]`` that captured the table. Raises StagingInvalid where a window is missing
    (STG001) or damaged (STG002)."""
    parts = ((number, log.manifest(number).tables.get(table)) for number in range(after + 1, upto + 1))
    return [WindowSlice(number, part) for number, part in parts if part is not None]


def verify_files(log: ChangeLog, windows: Sequence[WindowSlice]) -> None:
    """Raises StagingInvalid (STG005) where a file is missing or differs from the sealed one."""
    for window in windows:
        require_unchanged(log, f"window {window.window}", window.part.files)


def require_unchanged(log: ChangeLog, owner: str, files: Sequence[DataFile]) -> None:
    """``owner``: what the files belong to, for the error message."""
    for file in files:
        actual = _fingerprint(log, file)
        if actual != (file.bytes, file.sha256):
            raise file_damaged(log, owner, file, actual[1] and f"{actual[0]} bytes, sha256 {actual[1]}")


def _fingerprint(log: ChangeLog, file: DataFile) -> tuple[int, str]:
    if file.bytes > HASHED_BYTES:
        return (file.bytes, file.sha256) if log.store.exists(file.path) else (0, "")
    try:
        content = log.store.read(file.path)
    except FileNotFoundError:
        return 0, ""
    return len(content), hashlib.sha256(content).hexdigest()


def file_damaged(log: ChangeLog, owner: str, file: DataFile, actual: str) -> StagingInvalid:
    return StagingInvalid.of(
        "STG005",
        f"a file of {owner} has changed since it was written",
        where=log.store.url(file.path),
        found=actual or "no such file",
        allowed=f"{file.bytes} bytes, {file.rows} rows, sha256 {file.sha256}",
        do="restore the staging folder, or resync the tables that need it",
        data="nothing of the batch was applied",
    )


def window_schemas(
    log: ChangeLog, windows: Sequence[WindowSlice], current: TableSchema, floor: str
) -> list[WindowSchemas]:
    """The schemas of the records above the floor: records at or below it are part of the copy. A file is read only
    where its window has another schema than ``current``."""
    return [_window_schemas(log, window, current, floor) for window in windows]


def schemas_by_order(
    log: ChangeLog, windows: Sequence[WindowSlice], current: TableSchema, floor: str
) -> list[TableSchema]:
    """The schemas of the records above the floor, by their first order keys in all of the windows. Files are read only
    where a window has another schema than ``current``."""
    if {one for window in windows for one in window.part.schema_ids} <= {current.schema_id}:
        return []
    first_keys: dict[str, str] = {}
    for window in windows:
        for schema_id, order_key in first_keys_of(log, window, floor).items():
            first_keys[schema_id] = min(order_key, first_keys.get(schema_id, order_key))
    return [log.schema(schema_id) for schema_id in sorted(first_keys, key=first_keys.__getitem__)]


def _window_schemas(log: ChangeLog, window: WindowSlice, current: TableSchema, floor: str) -> WindowSchemas:
    if set(window.part.schema_ids) <= {current.schema_id}:
        return WindowSchemas(window.window, (current,) if window.part.schema_ids else ())
    first_keys = first_keys_of(log, window, floor)
    unknown: list[str] = []
    for file in window.part.files if window.part.counts.get(Operation.SCHEMA.value) else ():
        unknown += _unknown_initials(log, file.path, [("order_key", ">", floor)])
    schemas = tuple(log.schema(schema_id) for schema_id in sorted(first_keys, key=first_keys.__getitem__))
    return WindowSchemas(window.window, schemas, tuple(unknown))


def first_keys_of(log: ChangeLog, window: WindowSlice, floor: str) -> dict[str, str]:
    """By schema id, the first order key above the floor."""
    first_keys: dict[str, str] = {}
    for file in window.part.files:
        with log.store.open_input(file.path) as content:
            columns = ["order_key", "schema_id"]
            rows = pq.read_table(content, columns=columns, filters=[("order_key", ">", floor)])
        for row in rows.group_by("schema_id").aggregate([("order_key", "min")]).to_pylist():
            schema_id, order_key = row["schema_id"], row["order_key_min"]
            if schema_id:  # empty in control events and in records that could not be decoded
                first_keys[schema_id] = min(order_key, first_keys.get(schema_id, order_key))
    return first_keys


def _unknown_initials(log: ChangeLog, path: str, after_floor: list[tuple[str, str, str]]) -> list[str]:
    """The columns without an initial value in schema records that carry the warning ``initial_unknown``."""
    names: list[str] = []
    filters = [*after_floor, ("op", "=", Operation.SCHEMA.value)]
    with log.store.open_input(path) as content:
        rows = pq.read_table(content, columns=["after", "warnings"], filters=filters).to_pylist()
    for row in rows:
        if INITIAL_UNKNOWN in (row["warnings"] or ()):
            schema: dict[str, Any] = json.loads(row["after"])
            names += [column["name"] for column in schema["columns"] if column["initial"] is None]
    return names


def read_records(spark: SparkSession, log: ChangeLog, windows: Sequence[WindowSlice]) -> DataFrame:
    paths = [log.store.url(file.path) for window in windows for file in window.part.files]
    if not paths:
        return spark.createDataFrame([], RECORD_COLUMNS)
    return spark.read.schema(RECORD_COLUMNS).parquet(*paths)


def row_records(records: DataFrame, after: str) -> DataFrame:
    """The row changes above an order key: no control events, and no records that could not be decoded."""
    controls = sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE))
    return records.where((F.col("order_key") > after) & ~F.col("op").isin(*controls))
