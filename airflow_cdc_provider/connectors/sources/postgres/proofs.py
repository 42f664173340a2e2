"""Checksums of the rows of a copy, which PostgreSQL computes under the snapshot of the copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.compare import (
    ComparedTable,
    cuts_query,
    hashes_query,
    rows_query,
    sums_query,
)
from airflow_cdc_provider.connectors.sources.postgres.splits import fetch_all, split_of, with_rows
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.proof.key_intervals import WHOLE, IntervalSums, Key, KeyInterval


@dataclass(frozen=True)
class SnapshotProofs:
    client: PostgresClient
    task: TableTask
    copy: Copy

    @property
    def table(self) -> ComparedTable:
        return ComparedTable(self.task, self.copy.schema, split_of(self.copy.read.splits[0]).viewed.encoding)

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        return fetch_all(self.client, self.copy, cuts_query(self.table, interval, rows))

    def sums(self, intervals: Sequence[KeyInterval]) -> Mapping[int, IntervalSums]:
        rows = fetch_all(self.client, self.copy, sums_query(self.table, intervals))
        return {number: IntervalSums(count, tuple(map(int, sums))) for number, count, *sums in rows}

    def hashes(self, intervals: Sequence[KeyInterval]) -> SplitRead:
        return with_rows(self.copy, hashes_query(self.table, intervals), few=WHOLE not in intervals)

    def rows(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> SplitRead:
        return with_rows(self.copy, rows_query(self.table, intervals, keys), few=True)
