"""Splits processed in parallel, by processes of this machine or by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from spark_jobs.runtime.cluster_checks import name_missing_packages
from spark_jobs.runtime.job import Job

S = TypeVar("S")
R = TypeVar("R")


def run_splits(job: Job, function: Callable[[S], R], splits: Sequence[S]) -> list[R]:
    """The result of ``function`` for each split, in order. A single split runs in this process. Several run in
    processes of this machine where Spark has no other one, else in Spark's tasks. Function and splits are pickled."""
    if len(splits) <= 1:
        return list(job.threads.map(function, splits))
    return (
        run_in_processes(job, function, splits)
        if job.application.local_cores
        else run_in_spark_tasks(job, function, splits)
    )


def run_in_processes(job: Job, function: Callable[[S], R], splits: Sequence[S]) -> list[R]:
    """Raises SourceUnavailable (JOB007) where a process was killed."""
    try:
        return list(job.processes.map(function, splits))
    except BrokenProcessPool as error:
        raise SourceUnavailable(
            Problem(
                "JOB007",
                "a process that read a split of the source was killed",
                where=job.step.folder,
                found="a signal from outside, or from the kernel for lack of memory",
                do="check the kernel log for the out-of-memory killer; the next attempt reads again",
                data="this attempt wrote nothing visible",
            )
        ) from error


def run_in_spark_tasks(job: Job, function: Callable[[S], R], splits: Sequence[S]) -> list[R]:
    with name_missing_packages(job.step.definition.source.type):
        return list(job.spark.sparkContext.parallelize(splits, len(splits)).map(function).collect())
