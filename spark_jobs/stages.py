"""How far the Spark jobs of this thread are, as Spark itself counts."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from pyspark.sql import SparkSession

from spark_jobs.progress import Progress


def watched(spark: SparkSession, rows: int) -> Callable[[], Progress | None]:
    """Put the jobs that this thread starts from now on into a group of their own, and say on demand how many rows they
    have read. ``rows`` is an estimate of how many there will be."""
    group = uuid.uuid4().hex
    context = spark.sparkContext
    context.setJobGroup(group, "copy")

    def look() -> Progress | None:
        tracker = context.statusTracker()
        store = context._jsc.sc().statusStore()
        read = 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                attempts = store.stageData(stage, False, store.stageData_default_3())
                read += sum(attempts.apply(n).inputRecords() for n in range(attempts.size()))
        return Progress(read, of=rows or None) if read else None

    return look
