"""Sessions for tables of a few rows: to compile code for them takes longer than they do."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_jobs.runtime.sessions import fresh, interpreted


def small_session(spark: SparkSession) -> SparkSession:
    session = fresh(spark)
    interpreted(session)
    return session
