"""Sessions for tables of a few rows: compiling code for them takes longer than running them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_jobs.runtime.sessions import disable_codegen, new_session


def small_session(spark: SparkSession) -> SparkSession:
    session = new_session(spark)
    disable_codegen(session)
    return session
