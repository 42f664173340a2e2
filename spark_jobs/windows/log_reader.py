"""The files of the change log that one table still has to apply, and what is in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.core.errors import Problem, StagingInvalid
from airflow_cdc_provider.core.log.change_log import DataFile, TableSlice
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, FIELDS, Operation
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.batches.schema_evolution import WindowSchemas

HASHED_BYTES = 64 * 1024 * 1024
"""Larger files are vouched for by their number of rows alone: reading them twice would cost more than it finds."""

KINDS = {
    "before_complete": "BOOLEAN",
    "after_complete": "BOOLEAN",
    "refetch": "ARRAY<STRING>",
    "phase": "TINYINT",
    "tx_seq": "BIGINT",
    "commit_ts": "TIMESTAMP",
    "warnings": "ARRAY<STRING>",
}
RECORD = ", ".join(f"{quoted(name)} {KINDS.get(name, 'STRING')}" for name in FIELDS)
INITIAL_UNKNOWN = "initial_unknown"


@dataclass(frozen=True)
class WindowSlice:
    """What one window holds of the table."""

    window: int
    part: TableSlice


def cut(log: ChangeLog, table: str, after: int, upto: int) -> list[WindowSlice]:
    """The windows in ``(after, upto]`` that captured the table. Raises StagingInvalid where one is missing (STG001) or
    damaged (STG002)."""
    parts = ((number, log.manifest(number).tables.get(table)) for number in range(after + 1, upto + 1))
    return [WindowSlice(number, part) for number, part in parts if part is not None]


def verify(log: ChangeLog, windows: Sequence[WindowSlice]) -> None:
    """Raises StagingInvalid (STG005) where a file is missing or not the one that was sealed."""
    for window in windows:
        require_unchanged(log, f"window {window.window}", window.part.files)


def require_unchanged(log: ChangeLog, of: str, files: Sequence[DataFile]) -> None:
    for file in files:
        found = _fingerprint(log, file)
        if found != (file.bytes, file.sha256):
            raise damaged(log, of, file, found[1] and f"{found[0]} bytes, sha256 {found[1]}")


def _fingerprint(log: ChangeLog, file: DataFile) -> tuple[int, str]:
    if file.bytes > HASHED_BYTES:
        return (file.bytes, file.sha256) if log.store.exists(file.path) else (0, "")
    try:
        content = log.store.read(file.path)
    except FileNotFoundError:
        return 0, ""
    return len(content), hashlib.sha256(content).hexdigest()


def damaged(log: ChangeLog, of: str, file: DataFile, found: str) -> StagingInvalid:
    return StagingInvalid(
        Problem(
            "STG005",
            f"a file of {of} is not the one that was written",
            where=log.store.url(file.path),
            found=found or "no such file",
            allowed=f"{file.bytes} bytes, {file.rows} rows, sha256 {file.sha256}",
            do="restore the staging folder, or resync the tables that need it",
            data="nothing of the batch was applied",
        )
    )


def window_schemas(
    log: ChangeLog, windows: Sequence[WindowSlice], held: TableSchema, floor: str
) -> list[WindowSchemas]:
    """The schemas of the records behind the floor: what is in the copy already says nothing about the target. Files are
    looked into only where a window knows another schema than ``held``."""
    return [_window_schemas(log, window, held, floor) for window in windows]


def _window_schemas(log: ChangeLog, window: WindowSlice, held: TableSchema, floor: str) -> WindowSchemas:
    if set(window.part.schema_ids) <= {held.schema_id}:
        return WindowSchemas(window.window, (held,) if window.part.schema_ids else ())
    behind = [("order_key", ">", floor)]
    first: dict[str, str] = {}
    unknown: list[str] = []
    for file in window.part.files:
        with log.store.open_input(file.path) as content:
            rows = pq.read_table(content, columns=["order_key", "schema_id"], filters=behind)
        for row in rows.group_by("schema_id").aggregate([("order_key", "min")]).to_pylist():
            if not row["schema_id"]:  # of a record that is about no row, or that nobody could read
                continue
            first[row["schema_id"]] = min(row["order_key_min"], first.get(row["schema_id"], row["order_key_min"]))
        if window.part.counts.get(Operation.SCHEMA.value):
            unknown += _unknown_initials(log, file.path, behind)
    schemas = tuple(log.schema(schema_id) for schema_id in sorted(first, key=first.__getitem__))
    return WindowSchemas(window.window, schemas, tuple(unknown))


def _unknown_initials(log: ChangeLog, path: str, behind: list[tuple[str, str, str]]) -> list[str]:
    """The columns that may be meant by schema records that warn: those without an initial value."""
    names: list[str] = []
    filters = [*behind, ("op", "=", Operation.SCHEMA.value)]
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
        return spark.createDataFrame([], RECORD)
    return spark.read.schema(RECORD).parquet(*paths)


def row_records(records: DataFrame, after: str) -> DataFrame:
    """The changes of rows behind an order key: no control events, and none that nobody can read."""
    controls = sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE))
    return records.where((F.col("order_key") > after) & ~F.col("op").isin(*controls))
