"""Spanner's stand-in: batches of mutations of Google's client, as many rows as a commit may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from google.cloud import spanner

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.spanner import INSTANCE, EmbeddedSpanner
from tests.bench.warehouses.warehouse import COLUMNS, OP, texts
from tests.spanner_client import open_database

DATABASE = "shop"
MOST_MUTATIONS = 80_000
ROWS_AT_ONCE = MOST_MUTATIONS // len(COLUMNS)
TYPES = {
    **dict.fromkeys(("id", "customer_id"), "INT64"),
    **dict.fromkeys(("total", "tax"), "NUMERIC"),
    **dict.fromkeys(("status", "payload", "note"), "STRING(MAX)"),
    "rate": "FLOAT64",
    "active": "BOOL",
    "placed_at": "TIMESTAMP",
    "updated_at": "TIMESTAMP",
    "ship_on": "DATE",
}
ALL_ROWS = spanner.KeySet(all_=True)


class Spanner:
    stage = ConnectionInfo()

    def __init__(self, server: EmbeddedSpanner) -> None:
        self.connection = server.connection
        options = {"instance": INSTANCE, "database": DATABASE}
        self.target = Target("spanner", connection="warehouse", options=options)
        self.database = open_database(server.port, DATABASE)
        children = psutil.Process().children()
        self.process = next(child for child in children if str(server.port) in child.cmdline())

    def copy(self, name: str) -> None:
        columns = ", ".join(f"{column} {kind}" for column, kind in TYPES.items())
        self.database.update_ddl([f"CREATE TABLE {name} ({columns}) PRIMARY KEY (id)"]).result()
        for rows in chunks(self._rows("items", COLUMNS)):
            with self.database.batch() as batch:
                batch.insert(name, COLUMNS, rows)

    def by_hand(self, name: str, files: Sequence[Path]) -> None:
        for file in files:
            rows = pq.read_table(file, columns=[*COLUMNS, OP])
            local = rows.column_names.index("updated_at")
            rows = rows.set_column(local, "updated_at", rows["updated_at"].cast(pa.timestamp("us", "UTC")))
            deleted = pc.equal(rows[OP], "D")
            live = rows.filter(pc.invert(deleted)).select(COLUMNS)
            for some in chunks(list(zip(*(column.to_pylist() for column in live.columns), strict=True))):
                with self.database.batch() as batch:
                    batch.insert_or_update(name, COLUMNS, some)
            for keys in chunks([[key] for key in rows.filter(deleted)["id"].to_pylist()]):
                with self.database.batch() as batch:
                    batch.delete(name, spanner.KeySet(keys=keys))

    def sums(self, name: str) -> list[str]:
        """Its queries cannot sum."""
        wanted = ("id", "customer_id", "total", "tax", "note", "payload", "placed_at")
        ids, customers, totals, taxes, notes, payloads, times = zip(*self._rows(name, wanted), strict=True)
        counts = len(set(notes) - {None}), sum(payload is not None for payload in payloads)
        return texts((len(ids), sum(ids), sum(customers), sum(totals), sum(taxes), *counts, max(times)))

    def engine_s(self) -> float:
        """CPU seconds of the stand-in so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def _rows(self, name: str, columns: Sequence[str]) -> list[Any]:
        with self.database.snapshot() as snapshot:
            return list(snapshot.read(name, columns, ALL_ROWS))


def chunks(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE))
