"""A table read over JDBC as a DataFrame of the target's types."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import JdbcRead


def read_jdbc(spark: SparkSession, read: JdbcRead, columns: Sequence[str]) -> DataFrame:
    """These columns only: what the query has besides is for its predicates. One Spark task and one connection per
    predicate. User and password travel as options, which Spark redacts."""
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
    return frame.select(*(F.expr(read.casts.get(name, quoted(name))).alias(name) for name in columns))


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
