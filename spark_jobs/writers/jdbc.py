"""Reads a table over JDBC as a DataFrame with the target's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.targets.sparksql.names import quoted


@dataclass(frozen=True)
class JdbcRead:
    """``query`` is a parenthesised SELECT with alias, ``session_init`` runs first on the connection. ``casts``: column
    → Spark SQL expression for its type, where Spark's own mapping of the JDBC type differs."""

    url: str
    driver: str
    user: str
    password: str
    query: str
    session_init: str
    fetch_rows: int
    casts: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JdbcRead({self.query!r})"


def read_jdbc(spark: SparkSession, read: JdbcRead, columns: Sequence[str]) -> DataFrame:
    """One Spark task and one connection. User and password are passed as options, which Spark redacts."""
    frame = spark.read.jdbc(
        read.url,
        read.query,
        properties={
            "driver": read.driver,
            "user": read.user,
            "password": read.password,
            "fetchsize": str(read.fetch_rows),
            "sessionInitStatement": read.session_init,
        },
    )
    return frame.select(*(F.expr(read.casts.get(name, quoted(name))).alias(name) for name in columns))
