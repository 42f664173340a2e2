"""The reports of comparisons: files in staging, by table and time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.log.change_log import REPORTS, table_folder
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
    wanted = set(map(table_folder, tables))
    for folder in sorted(store.names(REPORTS)):
        names = sorted(store.names(f"{REPORTS}/{folder}"))
        if names and (not wanted or folder in wanted):
            yield _read(replicator, f"{REPORTS}/{folder}/{names[-1]}")


def _read(replicator: Replicator, path: str) -> Report:
    import pyarrow.parquet as pq

    with replicator.log.store.open_input(path) as content:
        rows = pq.read_table(content).to_pylist()
    lines = [ValueDifference(row["key"], row["column"], row["source_hash"], row["target_hash"]) for row in rows]
    return Report(rows[0]["table"], rows[0]["at"].isoformat(timespec="milliseconds"), rows[0]["window"], tuple(lines))


def remove_old_reports(replicator: Replicator, now: str) -> None:
    """Those that are older than ``staging.retain``, except for the last one of each table."""
    store = replicator.log.store
    before = datetime.fromisoformat(now) - replicator.definition.staging.retain
    for folder in store.names(REPORTS):
        for name in sorted(store.names(f"{REPORTS}/{folder}"))[:-1]:
            if datetime.strptime(name.partition("-")[0], NAME_TIME).replace(tzinfo=UTC) < before:
                store.delete(f"{REPORTS}/{folder}/{name}")
