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
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.runtime.memory_budget import read_small_files
from spark_jobs.windows.parquet_files import iter_batches, part_files

ROWS, BATCH = "rows", "batch.json"
"""The folder of the rows, and the file of the batch itself, inside the folder of a batch."""


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
        return self.spark.read.schema(staged_schema(self.batch)).parquet(self.store.url(self._folder))

    @property
    def files(self) -> list[str]:
        return part_files(self.store, self._folder)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """File by file, never all at once."""
        return chain.from_iterable(map(self.batches_of, self.files))

    @property
    def batches_of(self) -> Callable[[str], Iterator[pa.RecordBatch]]:
        """Reads one of the files; can be pickled."""
        return partial(iter_batches, self.store)

    @contextlib.contextmanager
    def table(self) -> Iterator[pa.Table]:
        """All rows, whose memory stays reserved until the block ends. Raises NeedsSpark where it exceeds the budget."""
        files = self.files
        if not files:
            raise NeedsSpark("no file of rows")
        with read_small_files(self.store, (files, self.columns)) as (rows,):
            yield rows

    @property
    def columns(self) -> pa.Schema:
        """Of the rows, whichever engine wrote them."""
        columns = arrow_schema(self.batch.schema)
        texts = [*([ORDER] if self.batch.schema.key else []), OP]
        known = [(KNOWN, pa.list_(pa.string()))] if self.batch.partial else []
        return pa.schema([*columns, *((name, pa.string()) for name in texts), *known])

    @property
    def _folder(self) -> str:
        return f"{self.batch.folder}/{ROWS}"


def staged_schema(batch: Batch) -> str:
    """The columns of the staged rows. Spelled out, because inferring them from the files costs a Spark job."""
    columns = [f"{quoted(column.name)} {column_type(column.type)}" for column in batch.schema.columns]
    order = [f"{ORDER} STRING"] if batch.schema.key else []
    return ", ".join([*columns, *order, f"{OP} STRING", *([f"{KNOWN} ARRAY<STRING>"] if batch.partial else [])])
