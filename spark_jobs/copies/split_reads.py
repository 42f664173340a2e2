"""A table in splits, each of which any process can read, any number of times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.connectors.copied.reading import read_split
from airflow_cdc_provider.connectors.source_features import ReadsSplits
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.copies.throttle import Throttle
from spark_jobs.runtime.planned_source import open_planned_source, planned_hash_key
from spark_jobs.runtime.remote_errors import as_remote_failure

ROWS_PER_BATCH = 10_000


def read_splits(
    spark: SparkSession,
    step: Step,
    secrets: Secrets,
    splits: Sequence[str],
    schema: TableSchema,
    rule: TableRule,
) -> DataFrame:
    """One Spark task per split, or as many as the rule allows at once; each task opens the source, and a retried task
    reads its splits again. The secrets
    travel only inside the serialised tasks. Read the frame inside ``from_remote_failure``."""
    columns = ", ".join(f"{quoted(column.name)} {column_type(column.type)}" for column in schema.columns)
    if not splits:
        return spark.createDataFrame([], columns)
    context = spark.sparkContext
    readers = rule.snapshot.readers(len(splits), context.defaultParallelism)
    rate = rule.snapshot.rows_per_second(readers)
    tasks = readers if rule.snapshot.parallel or rate else len(splits)
    frame = spark.createDataFrame(context.parallelize([(split,) for split in splits], tasks), "split STRING")
    rows = partial(_rows, replace(step, tables=()), secrets, schema, rule, rate)
    return frame.mapInArrow(rows, columns)


def _rows(
    step: Step,
    secrets: Secrets,
    schema: TableSchema,
    rule: TableRule,
    rate: float | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in an executor."""
    with as_remote_failure():
        source = open_planned_source(step, secrets)
        assert isinstance(source, ReadsSplits), "only such sources have splits"
        key = planned_hash_key(step, secrets)
        throttle = Throttle(rate)
        for batch in batches:
            for split in batch.column("split").to_pylist():
                for rows in read_split(source, split, schema, rule, key):
                    throttle.passed(len(rows))
                    yield from rows.to_batches(ROWS_PER_BATCH)
