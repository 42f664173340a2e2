"""Shares of a work, done side by side: by threads of this process or by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from spark_jobs.executors import missing_packages_are_named
from spark_jobs.job import Job

S = TypeVar("S")
R = TypeVar("R")


def side_by_side(job: Job, function: Callable[[S], R], shares: Sequence[S], native: bool = False) -> list[R]:
    """What ``function`` says of each share, in their order. A share that is alone is done here. So are ``native`` ones,
    which hardly need Python's lock, where Spark has no other machine. Everything else needs processes, and these are
    Spark's: function and shares are sent there."""
    if len(shares) == 1 or (native and job.application.local_cores):
        return list(job.threads.map(function, shares))
    return by_tasks(job, function, shares) if shares else []


def by_tasks(job: Job, function: Callable[[S], R], shares: Sequence[S]) -> list[R]:
    with missing_packages_are_named(job.step.definition.source.type):
        return list(job.spark.sparkContext.parallelize(shares, len(shares)).map(function).collect())
