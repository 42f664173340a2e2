"""Splits processed in parallel: by threads of the driver, or by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from spark_jobs.runtime.cluster_checks import name_missing_packages
from spark_jobs.runtime.job import Job

S = TypeVar("S")
R = TypeVar("R")


class RunSplits(Protocol):
    def __call__(self, job: Job, function: Callable[[S], R], splits: Sequence[S]) -> list[R]:
        """The result of ``function`` for each split, in order."""


def run_in_driver(job: Job, function: Callable[[S], R], splits: Sequence[S]) -> list[R]:
    """For few rows, or for a single split."""
    return list(job.threads.map(function, splits))


def run_in_tasks(job: Job, function: Callable[[S], R], splits: Sequence[S]) -> list[R]:
    """Function and splits are pickled."""
    if not splits:
        return []
    with name_missing_packages(job.step.definition.source.type):
        return list(job.spark.sparkContext.parallelize(splits, len(splits)).map(function).collect())
