"""The choice of the engine for the work on a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_cdc_provider.core.spec.engines import LOCAL_ROWS, LOCAL_UPLOAD_ROWS, EngineName, EngineUse, why_spark
from airflow_cdc_provider.targets.database.loading import LoadsFiles
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.engines.engine import Engine
from spark_jobs.engines.local import LocalEngine
from spark_jobs.engines.spark import SparkEngine
from spark_jobs.runtime.job import Job, TableWork

R = TypeVar("R")


def on_engine(job: Job, work: TableWork, rows: int, do: Callable[[Engine], R], limit: int = LOCAL_ROWS) -> R:
    """Do work on ``rows`` rows with the local engine if it can, else with Spark. ``limit``: of the rows for the local
    engine. The choice becomes part of the table's result."""
    reason = why_spark(job.step.definition.spark.engine, rows, limit)
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


def local_limit(tables: TargetTables) -> int:
    """The most rows that the local engine folds and merges for these tables."""
    uploads = isinstance(tables, DatabaseTarget) and isinstance(tables.server, LoadsFiles)
    return LOCAL_UPLOAD_ROWS if uploads else LOCAL_ROWS
