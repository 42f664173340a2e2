"""Rows of a table that a batch needs, read by their keys without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from airflow_cdc_provider.targets.exact_values import Numbers
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.spanner.columns import DELETED_COLUMN, StoredColumn
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.rows import KeyedRows, Stored, count_hashes, hashes_of
from airflow_cdc_provider.targets.spanner.values import decode, key_of
from airflow_cdc_provider.targets.target import RowsRead


class SpannerRows:
    """``ReadsRows`` of a target."""

    database: SpannerDatabase

    def count_rows(self, target_table: str, read: RowsRead, rows: pa.Table) -> Sequence[int]:
        stored = self._stored(target_table, read)
        hashes = hashes_of(rows, stored)
        with self.database.session("read") as session:
            counts = count_hashes(session.read, target_table, hashes)
        return [counts.get(one, 0) for one in hashes]

    def live_rows(
        self, target_table: str, read: RowsRead, keys: pa.Table, columns: pa.Schema
    ) -> tuple[Numbers, pa.Table]:
        stored = self._stored(target_table, read)
        asked = KeyedRows(stored, keys)
        numbers = {key: number for number, key in enumerate(asked.keys)}
        names = [column.name for column in stored.columns]
        if stored.soft:
            names.append(DELETED_COLUMN.name)
        by_name = {column.name: position for position, column in enumerate(stored.columns)}
        key_positions = [by_name[column.name] for column in stored.key_columns]
        with self.database.session("read") as session:
            found = [
                row
                for key_set in asked.key_sets()
                for row in session.read(target_table, names, key_set)
                if not (stored.soft and row[-1].bool_value)
            ]
        of = (key_of([row[position] for position in key_positions], stored.key_types) for row in found)
        return np.array([numbers[key] for key in of], np.int64), table_of(found, stored.columns).select(columns.names)

    def _stored(self, target_table: str, read: RowsRead) -> Stored:
        if read.added:
            raise NeedsSpark("added columns")
        return Stored(target_table, read.schema, read.soft, self.database.options.json)


def table_of(rows: Sequence[Sequence[object]], columns: Sequence[StoredColumn]) -> pa.Table:
    """``rows``: the values of the columns, and maybe more."""
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [decode(list(found), column) for column, found in zip(columns, values, strict=False)]
    return pa.table(arrays, [column.source for column in columns])
