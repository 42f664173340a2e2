"""The fold of a Spark frame, by Spark's tasks: to rows of texts, or to typed rows.

Typed by the tasks themselves, rows cost a third of what they cost if Spark parses their texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.batches.staged_columns import staged_schema
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, arrow_rows
from spark_jobs.folds.fold import Fold
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.record_columns import DELETE, is_incomplete, own_key
from spark_jobs.folds.versions import TIMED_ENTRIES, VersionFold

ROWS_PER_TASK = 250_000
ROWS_PER_BATCH = 10_000
ROWS = "key STRING, op STRING, order_key STRING, image STRING, known ARRAY<STRING>, root STRING, " + (
    "root_may_be_missing BOOLEAN"
)
VERSIONS = (
    "key STRING, op STRING, order_key STRING, at BIGINT, image STRING, known ARRAY<STRING>, root STRING, "
    "root_may_be_missing BOOLEAN"
)
GROUP, LINKED = "_cdc_group", "_cdc_linked"
UNUSUAL = "CDC_UNUSUAL_NOTATION"
"""The error text of a task that met a value which only Spark's casts can convert."""


def fold_in_tasks(entries: DataFrame, fold: Fold, rows: int, moved: bool) -> DataFrame:
    """``rows``: about how many entries there are. ``moved``: some rows move to another key without all their columns;
    all keys of such a chain go to one task. A task's FoldError is part of the text of what Spark raises."""
    grouped = _grouped(entries.select(*ENTRIES.names), moved)
    return _parts(grouped, rows).mapInArrow(partial(_fold, fold, ENTRIES), ROWS)


def fold_versions_in_tasks(entries: DataFrame, fold: VersionFold, rows: int, moved: bool) -> DataFrame:
    """As ``fold_in_tasks``, of every change of a row (``versions.VERSIONS``)."""
    grouped = _grouped(entries.select(*TIMED_ENTRIES.names), moved)
    return _parts(grouped, rows).mapInArrow(partial(_fold, fold, TIMED_ENTRIES), VERSIONS)


def fold_typed_in_tasks(entries: DataFrame, fold: Fold, rows: int, schema: TableSchema, known: bool) -> DataFrame:
    """Rows to merge. ``known``: with the column KNOWN. No row moves to another key without all its columns. UNUSUAL or
    a task's FoldError is part of the text of what Spark raises."""
    typed = partial(_fold_typed, fold, schema, known)
    grouped = _grouped(entries.select(*ENTRIES.names), moved=False)
    return _parts(grouped, rows).mapInArrow(typed, staged_schema(schema, known))


def _grouped(entries: DataFrame, moved: bool) -> DataFrame:
    """With the column GROUP, whose rows go to one task."""
    return _with_chains(entries) if moved else entries.withColumn(GROUP, own_key())


def _parts(grouped: DataFrame, rows: int) -> DataFrame:
    return grouped.repartition(max(1, -(-rows // ROWS_PER_TASK)), GROUP).drop(GROUP)


def _fold(fold: Fold | VersionFold, columns: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    entries = pa.Table.from_batches((batch.cast(columns) for batch in batches), columns)
    if len(entries):
        yield from fold.rows(entries).to_batches(ROWS_PER_BATCH)


def _fold_typed(
    fold: Fold, schema: TableSchema, known: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    entries = pa.Table.from_batches(batches, ENTRIES)
    if not len(entries):
        return
    folded = fold.rows(entries)
    try:
        rows = arrow_rows(folded, schema, known)
    except CONVERSION_ERRORS:
        raise ValueError(UNUSUAL) from None
    yield from rows.to_batches(ROWS_PER_BATCH)


def _with_chains(entries: DataFrame) -> DataFrame:
    """``GROUP``: the same for all keys of a chain. Found by doubling steps: a chain of n keys needs log2(n) rounds."""
    arrivals = entries.where((F.col("phase") == ARRIVES) & is_incomplete()).select("link_id", F.col("key").alias("to"))
    departures = entries.where((F.col("phase") == DEPARTS) & (F.col("op") == DELETE))
    moves = departures.select("link_id", F.col("key_before").alias("from")).join(arrivals, "link_id")
    labels = _components(moves.select("from", "to").distinct())
    keyed = entries.withColumn("k", own_key()).join(labels, "k", "left")
    return keyed.withColumn(GROUP, F.coalesce("label", "k")).drop("k", "label")


def _components(edges: DataFrame) -> DataFrame:
    """Per key (``k``) the least key that it is connected with (``label``)."""
    both = edges.union(edges.select(F.col("to").alias("from"), F.col("from").alias("to"))).localCheckpoint()
    labels = both.select(F.col("from").alias("k")).distinct().withColumn("label", F.col("k")).localCheckpoint()
    while True:
        # The least label of the neighbours, and then the label of that label.
        near = both.join(labels, F.col("to") == F.col("k")).groupBy("from").agg(F.min("label").alias("near"))
        step = labels.join(near, F.col("k") == F.col("from")).select("k", "label", F.least("label", "near").alias("l"))
        far = step.select(F.col("k").alias("of"), F.col("l").alias("far"))
        step = step.join(far, F.col("l") == F.col("of")).select("k", "label", F.least("l", "far").alias("new"))
        step = step.localCheckpoint()
        if step.where("new < label").isEmpty():
            return step.select("k", "label")
        labels = step.select("k", F.col("new").alias("label"))
