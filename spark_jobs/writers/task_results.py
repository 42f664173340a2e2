"""Work on rows in Spark's tasks, with a small result of each task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from airflow_cdc_provider.core import errors
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.serde import from_plain, to_plain
from spark_jobs.batches.staged_rows import StagedRows

Work = Callable[[int, Iterable[pa.RecordBatch]], Any]
"""Number and rows of a task → a result that JSON can represent."""

ReadFile = Callable[[str], Iterator[pa.RecordBatch]]
Outcome = tuple[str | None, str | None]
"""Result and failure, as JSON. Errors are returned as data: an exception would reach the driver as text, with the
values that it quotes."""


def on_partitions(frame: DataFrame, work: Work) -> list[Any]:
    """The results, partition by partition. ``work`` is pickled. Raises its errors as they were raised. Spark looks
    columns up by names, in which dots and backticks mean something to it, so they are numbered meanwhile."""
    names = frame.columns
    numbered = frame.toDF(*(f"c{number}" for number in range(len(names))))
    rows = numbered.mapInArrow(partial(_on_partition, work, names), "result STRING, failure STRING").collect()
    return _results((row["result"], row["failure"]) for row in rows)


def on_files(rows: StagedRows, work: Work) -> list[Any]:
    """The results of tasks that read the files of a batch by themselves: Spark neither reads the rows nor compiles a
    plan for them. ``work`` and the store of the files are pickled. Raises the errors of ``work`` as they were raised.
    """
    files, context = rows.files, rows.spark.sparkContext
    if not files:
        return []
    tasks = context.parallelize(files, min(len(files), context.defaultParallelism))
    outcomes = tasks.mapPartitionsWithIndex(partial(_on_files, work, rows.batches_of))
    return _results(outcomes.collect())


def _on_partition(work: Work, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in an executor."""
    context = TaskContext.get()
    assert context is not None
    result, failure = _outcome(work, context.partitionId(), (batch.rename_columns(names) for batch in batches))
    columns = {"result": pa.array([result], pa.string()), "failure": pa.array([failure], pa.string())}
    yield pa.RecordBatch.from_pydict(columns)


def _on_files(work: Work, read: ReadFile, number: int, files: Iterable[str]) -> Iterator[Outcome]:
    """Runs in an executor."""
    yield _outcome(work, number, chain.from_iterable(map(read, files)))


def _outcome(work: Work, number: int, batches: Iterable[pa.RecordBatch]) -> Outcome:
    try:
        return json.dumps(work(number, batches)), None
    except CdcError as error:
        return None, json.dumps({"class": type(error).__name__, "problem": to_plain(error.problems[0])})


def _results(outcomes: Iterable[Outcome]) -> list[Any]:
    results = []
    for result, failure in outcomes:
        if failure is not None:
            raise _failure(failure)
        results.append(json.loads(result or "null"))
    return results


def _failure(text: str) -> CdcError:
    failure = json.loads(text)
    kind: Callable[[Problem], CdcError] = getattr(errors, failure["class"])
    return kind(from_plain(Problem, failure["problem"]))
