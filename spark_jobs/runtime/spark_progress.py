"""Progress of the Spark jobs of the current thread, from Spark's own counters."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.log.copy_progress import Progress


def watch_copy(spark: SparkSession, copy: Copy) -> Callable[[], Progress | None]:
    """Put the jobs that this thread starts from now on into a job group. Returns a function that reads their progress
    over the rows of the copy."""
    return watch_splits(spark, copy.rows) if copy.read.repeatable else _watch_rows(spark, copy.rows)


def _watch_rows(spark: SparkSession, rows: int) -> Callable[[], Progress | None]:
    group = uuid.uuid4().hex
    context = spark.sparkContext
    context.setJobGroup(group, "copy")

    def read() -> Progress | None:
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        infos = [info for job in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(job))]
        try:
            rows_read = sum(store.lastStageAttempt(stage).inputRecords() for info in infos for stage in info.stageIds)
        except Py4JError:
            return None  # the store does not have a stage that has not started
        return Progress(rows_read, of=rows or None) if rows_read else None

    return read


def watch_splits(spark: SparkSession, rows: int) -> Callable[[], Progress | None]:
    """The fraction of tasks that are done: each task reads a split, and Spark does not count its rows."""
    group = uuid.uuid4().hex
    context = spark.sparkContext
    context.setJobGroup(group, "copy")

    def read() -> Progress | None:
        tracker = context.statusTracker()
        jobs = [info for job in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(job))]
        stages = [found for job in jobs for stage in job.stageIds if (found := tracker.getStageInfo(stage))]
        tasks = sum(stage.numTasks for stage in stages)
        done = sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else 0.0
        return Progress(int(done * rows), of=rows or None, fraction=done) if done else None

    return read
