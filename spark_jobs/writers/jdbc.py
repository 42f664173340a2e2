"""Reads a table over JDBC as a DataFrame with the target's types."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.targets.database.server import JdbcAddress
from airflow_cdc_provider.targets.sparksql.names import quoted

FETCH_ROWS = 5_000


def read_jdbc(spark: SparkSession, address: JdbcAddress, query: str, casts: Mapping[str, str]) -> DataFrame:
    """One Spark task and one connection. ``casts``: column → Spark SQL expression for its type. User and password are
    passed as options, which Spark redacts."""
    frame = spark.read.jdbc(
        address.url,
        f"({query}) copied",
        properties={
            "driver": address.driver,
            "user": address.user,
            "password": address.password,
            "fetchsize": str(FETCH_ROWS),
            "sessionInitStatement": address.session_init,
        },
    )
    return frame.selectExpr(*(f"{cast} AS {quoted(name)}" for name, cast in casts.items()))
