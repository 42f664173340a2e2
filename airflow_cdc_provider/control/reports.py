"""The reports of comparisons: files in staging, by table and time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.log.change_log import REPORTS, report_folder, table_of_folder
from airflow_cdc_provider.core.proof.differences import ValueDifference

NAME_TIME = "%Y%m%dT%H%M%S%f"


@dataclass(frozen=True)
class Report:
    """``at``: UTC in ISO 8601 format; ``window``: at whose end source and copy were compared."""

    table: str
    at: str
    window: int
    lines: tuple[ValueDifference, ...]


def last_reports(replicator: Replicator, tables: Collection[str]) -> Iterator[Report]:
    """The last report of each table; of every table if ``tables`` is empty."""
    store = replicator.log.store
    for folder in sorted(store.names(REPORTS)):
        table = table_of_folder(folder)
        names = sorted(store.names(report_folder(table)))
        if names and (not tables or table in tables):
            yield _read(replicator, table, f"{report_folder(table)}/{names[-1]}")


def _read(replicator: Replicator, table: str, path: str) -> Report:
    import pyarrow.parquet as pq

    with replicator.log.store.open_input(path) as content:
        rows = pq.read_table(content).to_pylist()
    lines = [ValueDifference(row["key"], row["column"], row["source_hash"], row["target_hash"]) for row in rows]
    return Report(table, rows[0]["at"].isoformat(timespec="milliseconds"), rows[0]["window"], tuple(lines))


def remove_old_reports(replicator: Replicator, now: str) -> None:
    """Those that are older than ``staging.retain``, except for the last one of each table."""
    store = replicator.log.store
    before = datetime.fromisoformat(now) - replicator.definition.staging.retain
    for table in map(table_of_folder, store.names(REPORTS)):
        for name in sorted(store.names(report_folder(table)))[:-1]:
            if datetime.strptime(name.partition("-")[0], NAME_TIME).replace(tzinfo=UTC) < before:
                store.delete(f"{report_folder(table)}/{name}")
