"""Rows of the target that a batch needs, read by the driver."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.targets.exact_values import Numbers
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import ReadsRows, RowsRead
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, key_arrays


class TargetRows:
    """The table at the version that the batch is based on. Every method raises NeedsSpark."""

    def __init__(self, batch: BatchInput) -> None:
        self._tables, self._table, self._schema = batch.job.tables, batch.task.target, batch.plan.schema
        soft = batch.task.rule.on_delete is OnDelete.SOFT
        self._read = RowsRead(batch.version, self._schema, batch.plan.added, soft)

    def count(self, rows: pa.Table) -> Sequence[int]:
        """How often each of these distinct rows is in the table."""
        return self._readable().count_rows(self._table, self._read, rows)

    def live(self, keys: Sequence[str]) -> tuple[Numbers, pa.Table]:
        """The live rows with these distinct canonical keys, and the index of the key of each."""
        try:
            typed = pa.table(key_arrays(keys, self._schema), list(self._schema.key))
        except CONVERSION_ERRORS:
            raise NeedsSpark("keys in an unusual notation") from None
        return self._readable().live_rows(self._table, self._read, typed, arrow_schema(self._schema))

    def _readable(self) -> ReadsRows:
        if not isinstance(self._tables, ReadsRows):
            raise NeedsSpark("rows of the target must be read")
        return self._tables
