"""Splits processed in parallel: by threads of the driver, or by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from spark_jobs.runtime.cluster_checks import name_missing_packages
from spark_jobs.runtime.job import Job

S = TypeVar("S")
R = TypeVar("R")


class RunSplits(Protocol):
    def __call__(
        self, job: Job, function: Callable[[S], R], splits: Sequence[S], at_once: int | None = None
    ) -> list[R]:
        """The result of ``function`` for each split, in order. ``at_once``: how many splits are processed at once;
        None for as many as possible."""


def run_in_driver(job: Job, function: Callable[[S], R], splits: Sequence[S], at_once: int | None = None) -> list[R]:
    """For few rows, or for a single split."""
    return list(map(function, splits) if at_once == 1 else job.threads.map(function, splits))


def run_in_tasks(job: Job, function: Callable[[S], R], splits: Sequence[S], at_once: int | None = None) -> list[R]:
    """Function and splits are pickled."""
    if not splits:
        return []
    with name_missing_packages(job.step.definition.source.type):
        return list(job.spark.sparkContext.parallelize(splits, at_once or len(splits)).map(function).collect())
