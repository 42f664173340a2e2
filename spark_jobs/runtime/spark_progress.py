"""How far the Spark jobs of this thread are, as Spark itself counts."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.source import Copy
from spark_jobs.runtime.progress import Progress


def watched(spark: SparkSession, copy: Copy) -> Callable[[], Progress | None]:
    """Put the jobs that this thread starts from now on into a group of their own, and say on demand how far they are
    with the rows of the copy."""
    return shares_read(spark, copy.rows) if copy.read.repeatable else _rows_read(spark, copy.rows)


def _rows_read(spark: SparkSession, rows: int) -> Callable[[], Progress | None]:
    group = uuid.uuid4().hex
    context = spark.sparkContext
    context.setJobGroup(group, "copy")

    def look() -> Progress | None:
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        infos = [info for job in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(job))]
        try:
            read = sum(store.lastStageAttempt(stage).inputRecords() for info in infos for stage in info.stageIds)
        except Py4JError:
            return None  # a stage that has not started is not known yet; the next look may tell
        return Progress(read, of=rows or None) if read else None

    return look


def shares_read(spark: SparkSession, rows: int) -> Callable[[], Progress | None]:
    """Each task reads a share and Spark does not see its rows: the share of the tasks that are done."""
    group = uuid.uuid4().hex
    context = spark.sparkContext
    context.setJobGroup(group, "copy")

    def look() -> Progress | None:
        tracker = context.statusTracker()
        jobs = [info for job in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(job))]
        stages = [found for job in jobs for stage in job.stageIds if (found := tracker.getStageInfo(stage))]
        tasks = sum(stage.numTasks for stage in stages)
        done = sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else 0.0
        return Progress(int(done * rows), of=rows or None, share=done) if done else None

    return look
