"""Work on the partitions of a frame in Spark's tasks, with a small result of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from airflow_cdc_provider.core import errors
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.serde import from_plain, to_plain

Work = Callable[[int, Iterable[pa.RecordBatch]], Any]
"""Number and rows of a partition → a result that JSON can represent."""


def on_partitions(frame: DataFrame, work: Work) -> list[Any]:
    """The results. ``work`` is pickled. Raises its errors as they were raised."""
    results = frame.mapInArrow(partial(_run, work), "result STRING, failure STRING").collect()
    for row in results:
        if row["failure"]:
            raise _failure(row["failure"])
    return [json.loads(row["result"]) for row in results]


def _run(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in an executor. Errors are returned as data: an exception would reach the driver as text, with the values
    that it quotes."""
    context = TaskContext.get()
    assert context is not None
    result, failure = None, None
    try:
        result = json.dumps(work(context.partitionId(), batches))
    except CdcError as error:
        failure = json.dumps({"class": type(error).__name__, "problem": to_plain(error.problems[0])})
    columns = {"result": pa.array([result], pa.string()), "failure": pa.array([failure], pa.string())}
    yield pa.RecordBatch.from_pydict(columns)


def _failure(text: str) -> CdcError:
    failure = json.loads(text)
    kind: Callable[[Problem], CdcError] = getattr(errors, failure["class"])
    return kind(from_plain(Problem, failure["problem"]))
