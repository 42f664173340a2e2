"""A source that fetches single rows, and records that contain too little of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.spark.scripted_table import Row, ScriptedTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


class RowSource:
    """``rows``: the current rows, and since when; None for a deleted row. A fetch of another key returns nothing."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[Row | None, datetime]] = {}
        self.fetched: list[tuple[str, ...]] = []
        self.away = False

    def identity(self) -> dict[str, str]:
        return {}

    def fetch(self, table: TableTask, schema: TableSchema, records: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        keys = tuple(one.key or "" for one in records)
        self.fetched.append(keys)
        for key, (found, since) in self.rows.items():
            if (name := canonical([key])) in keys:
                if found is None:
                    yield ChangeRecord(table.table, "delete", "", "", key_before=name, commit_ts=since)
                else:
                    image = canonical(found)
                    yield ChangeRecord(
                        table.table, "read", "", "", key=name, after=image, after_complete=True, commit_ts=since
                    )
        if self.away:
            raise SourceUnavailable.of("SRC999", "the source is away")


def gap(table: ScriptedTable, key: int, second: float = 0) -> ChangeRecord:
    return table.record("gap", key=canonical([key]), commit_ts=at(second))


def change(table: ScriptedTable, second: float, **values: Any) -> ChangeRecord:
    """An update with some of the columns."""
    record = table.update(values, complete=False)
    record.commit_ts = at(second)
    return record


def key_only(table: ScriptedTable, key: int) -> ChangeRecord:
    """A record of a source that sends keys alone."""
    record = table.update({"id": key}, complete=False, op="upsert")
    record.refetch = ("*",)
    return record
