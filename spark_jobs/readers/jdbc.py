"""A table read over JDBC as a DataFrame of the target's types."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import JdbcRead


def read_jdbc(spark: SparkSession, read: JdbcRead) -> DataFrame:
    """One Spark task and one connection per predicate. User and password travel as options, which Spark redacts."""
    frame = spark.read.jdbc(
        read.url,
        read.query,
        predicates=list(read.predicates),
        properties={
            "driver": read.driver,
            "user": read.user,
            "password": read.password,
            "fetchsize": str(read.fetch_rows),
            "sessionInitStatement": read.session_init,
        },
    )
    names = [name for name in frame.columns if name not in read.hidden]
    return frame.select(
        *(F.expr(read.casts[name]).alias(name) if name in read.casts else F.col(f"`{name}`") for name in names)
    )
