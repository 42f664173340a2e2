"""A target of each kind, and the rows of its tables as another client reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.runtime.sessions import disable_codegen, new_session
from tests.delta_tables import read
from tests.spark.databases import Database, new_schema

DELTA, ICEBERG, POSTGRES, MYSQL = "delta", "iceberg", "postgres", "mysql"
FEATURES = "delta with features"
OPTIONS = {FEATURES: {"table_features": ["columnMapping", "typeWidening"]}}
SERVERS = {POSTGRES: "postgres", MYSQL: "mariadb"}
"""The fixture of the server by the kind of database."""


@contextmanager
def target_of_kind(
    kind: str, schema: str, folder: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Target, Database | None]]:
    """A lake in ``folder``, or a new schema of a database."""
    if kind in SERVERS:
        with new_schema(kind, request.getfixturevalue(SERVERS[kind]), schema) as database:
            yield database.target, database
    else:
        yield Target(kind.partition(" ")[0], f"{folder}/lake", options=OPTIONS.get(kind, {})), None


def rows_of(
    tables: TargetTables, name: str, database: Database | None, spark: SparkSession
) -> Iterator[dict[str, Any]]:
    """``name``: of the target table."""
    if isinstance(tables, IcebergTarget):
        with tables.open(name) as (_, iceberg_table):
            yield from iceberg_table.scan().to_arrow().to_pylist()
    elif database is not None:
        with database.session() as cursor:
            cursor.execute(f"SELECT * FROM {database.schema}.{name}")
            names = [column[0] for column in cursor.description]
            yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    elif isinstance(tables, DeltaTarget) and tables.features:  # deltalake reads no widened columns
        reader = new_session(spark)
        disable_codegen(reader)
        yield from (row.asDict() for row in reader.read.format("delta").load(tables.locate(name)).collect())
    else:
        yield from read(DeltaTable(tables.locate(name))).to_pylist()
