"""Small numbers of change records, read by the driver from windows and carry-overs, and turned into frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.small_frames import small_table, text_schema
from spark_jobs.quarantine.carry_over import CARRY_COLUMNS
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.windows.record_files import SCHEMA

CARRIED_SCHEMA = pa.schema([*SCHEMA, *text_schema(*CARRY_COLUMNS)])


@dataclass(frozen=True)
class CarriedRecord:
    """A row of a carry-over. A record that returns to the fold has no ``kind``."""

    record: ChangeRecord
    kind: Carried | None = None
    since: str | None = None
    reason: str | None = None
    until: str | None = None


def read_window_records(log: ChangeLog, windows: Sequence[WindowSlice], filters: Any) -> list[tuple[int, ChangeRecord]]:
    """Records with the number of their window. ``filters`` as in pyarrow."""
    return [
        (window.window, _record(row))
        for window in windows
        for file in window.part.files
        for row in _rows(log, file.path, filters)
    ]


def read_carried_records(log: ChangeLog, carry: CarryOver, kind: Carried) -> list[CarriedRecord]:
    if not carry.counts.get(kind):
        return []
    rows = [row for file in carry.files for row in _rows(log, file.path, [("kind", "=", kind.value)])]
    return [CarriedRecord(_record(row), kind, row["since"], row["reason"], row["until"]) for row in rows]


def carried_frame(spark: SparkSession, records: Iterable[CarriedRecord]) -> DataFrame:
    return spark.createDataFrame(carried_table(records))


def carried_table(records: Iterable[CarriedRecord]) -> pa.Table:
    rows = [(*_values(row.record), *(getattr(row, name) for name in CARRY_COLUMNS)) for row in records]
    return small_table(rows, CARRIED_SCHEMA)


def _rows(log: ChangeLog, path: str, filters: Any) -> list[dict[str, Any]]:
    with log.store.open_input(path) as content:
        rows: list[dict[str, Any]] = pq.read_table(content, filters=filters).to_pylist()
    return rows


def _record(row: Mapping[str, Any]) -> ChangeRecord:
    fields = {name: row[name] for name in FIELDS}
    return ChangeRecord(**{**fields, "refetch": tuple(row["refetch"] or ()), "warnings": tuple(row["warnings"] or ())})


def _values(record: ChangeRecord) -> tuple[Any, ...]:
    plain = (getattr(record, name) for name in FIELDS)
    return tuple(list(value) if isinstance(value, tuple) else value for value in plain)
