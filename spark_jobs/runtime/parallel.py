"""Shares of a work, done side by side: by processes of this machine or by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from spark_jobs.runtime.cluster_checks import missing_packages_are_named
from spark_jobs.runtime.job import Job

S = TypeVar("S")
R = TypeVar("R")


def in_parallel(job: Job, function: Callable[[S], R], shares: Sequence[S]) -> list[R]:
    """What ``function`` says of each share, in their order. A share that is alone is done by this process, several by
    others: those of this machine where Spark has no other one, else Spark's. Function and shares are sent there."""
    if len(shares) <= 1:
        return list(job.threads.map(function, shares))
    return by_processes(job, function, shares) if job.application.local_cores else by_tasks(job, function, shares)


def by_processes(job: Job, function: Callable[[S], R], shares: Sequence[S]) -> list[R]:
    """Raises SourceUnavailable (JOB007) where one of the processes was ended."""
    try:
        return list(job.processes.map(function, shares))
    except BrokenProcessPool as error:
        raise SourceUnavailable(
            Problem(
                "JOB007",
                "a process that read a part of the source was ended",
                where=job.step.folder,
                found="a signal, sent by somebody else or for want of memory",
                do="look for the kernel's out-of-memory killer; the next attempt reads anew",
                data="nothing of this attempt is visible",
            )
        ) from error


def by_tasks(job: Job, function: Callable[[S], R], shares: Sequence[S]) -> list[R]:
    with missing_packages_are_named(job.step.definition.source.type):
        return list(job.spark.sparkContext.parallelize(shares, len(shares)).map(function).collect())
