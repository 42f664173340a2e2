"""The rows of a batch, as a Spark frame or as Arrow data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.core.decisions.steps import Batch
from airflow_cdc_provider.core.table.merge_plan import KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.batches.row_files import as_of_file, name_in_file, read_frame
from spark_jobs.batches.staged_columns import technical_columns
from spark_jobs.runtime.memory_budget import read_small_files
from spark_jobs.windows.parquet_files import iter_batches, part_files

ROWS, BATCH = "rows", "batch.json"
"""The folder of the rows, and the file of the batch itself, inside the folder of a batch."""


def staged_columns(schema: TableSchema, partial: bool) -> pa.Schema:
    columns = arrow_schema(schema)
    texts = [*([ORDER] if schema.key else []), OP]
    known = [(KNOWN, pa.list_(pa.string()))] if partial else []
    return pa.schema([*columns, *((name, pa.string()) for name in texts), *known])


@dataclass(frozen=True)
class StagedRows:
    """``session``: the session whose settings may carry the token of the commit."""

    session: Callable[[], SparkSession]
    store: Store
    batch: Batch

    @property
    def spark(self) -> SparkSession:
        return self.session()

    @cached_property
    def frame(self) -> DataFrame:
        schema, url = self.batch.schema, self.store.url(self._folder)
        return read_frame(self.spark, schema, technical_columns(schema, self.batch.partial), [url])

    @property
    def files(self) -> list[str]:
        return part_files(self.store, self._folder)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """File by file, never all at once."""
        return chain.from_iterable(map(self.batches_of, self.files))

    @property
    def batches_of(self) -> Callable[[str], Iterator[pa.RecordBatch]]:
        """Reads one of the files; can be pickled."""
        return partial(_batches, self.store)

    @contextlib.contextmanager
    def table(self) -> Iterator[pa.Table]:
        """All rows, whose memory stays reserved until the block ends. Raises NeedsSpark where it exceeds the budget."""
        files = self.files
        if not files:
            raise NeedsSpark("no file of rows")
        columns = pa.schema([field.with_name(name_in_file(field.name)) for field in self.columns])
        with read_small_files(self.store, (files, columns)) as (rows,):
            yield rows.rename_columns(self.columns.names)

    @property
    def columns(self) -> pa.Schema:
        """Of the rows, whichever engine wrote them."""
        return staged_columns(self.batch.schema, self.batch.partial)

    @property
    def _folder(self) -> str:
        return f"{self.batch.folder}/{ROWS}"


def _batches(store: Store, path: str) -> Iterator[pa.RecordBatch]:
    return map(as_of_file, iter_batches(store, path))
