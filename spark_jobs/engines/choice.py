"""The choice of the engine for the work on a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_cdc_provider.core.spec.engines import EngineName, EngineUse, why_spark
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.engines.engine import Engine
from spark_jobs.engines.local import LocalEngine
from spark_jobs.engines.spark import SparkEngine
from spark_jobs.runtime.job import Job, TableWork

R = TypeVar("R")


def on_engine(job: Job, work: TableWork, rows: int, do: Callable[[Engine], R]) -> R:
    """Do work on ``rows`` rows with the local engine if it can, else with Spark. The choice becomes part of the
    table's result."""
    reason = why_spark(job.step.definition.spark.engine, rows)
    if not reason:
        try:
            done = do(LocalEngine(job, work))
        except NeedsSpark as limit:
            reason = str(limit)
        else:
            work.uses.append(EngineUse(EngineName.LOCAL, rows))
            return done
    work.uses.append(EngineUse(EngineName.SPARK, rows, reason))
    return do(SparkEngine(job, work))
