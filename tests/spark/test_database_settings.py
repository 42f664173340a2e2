"""A session of Spark with a database inherits no setting that shapes, limits, cuts or delays a statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.targets.mysql.server import MysqlServer
from airflow_cdc_provider.targets.postgres.server import PostgresServer
from spark_jobs.writers.jdbc import read_jdbc
from tests.spark.databases import Database

pytestmark = pytest.mark.jvm

HOSTILE = {
    "postgres": {
        "extra_float_digits": "0",
        "datestyle": "'ISO, DMY'",
        "timezone": "'Asia/Tokyo'",
        "statement_timeout": "'10min'",
        "default_transaction_read_only": "on",
        "gin_fuzzy_search_limit": "1",
        "search_path": "public",
        "lock_timeout": "'10min'",
    },
    "mysql": {
        "sql_select_limit": "1",
        "time_zone": "'+09:00'",
        "max_sort_length": "64",
        "wait_timeout": "900",
        "group_concat_max_len": "4",
        "sql_mode": "'PAD_CHAR_TO_FULL_LENGTH'",
    },
}


@contextmanager
def hostile(warehouse: Database) -> Iterator[ConnectionInfo]:
    """A login whose sessions have these settings."""
    settings = HOSTILE[warehouse.kind]
    if warehouse.kind == "postgres":
        warehouse.execute("CREATE ROLE hostile LOGIN SUPERUSER PASSWORD 'secret'")
        warehouse.execute(*(f"ALTER ROLE hostile SET {name} = {value}" for name, value in settings.items()))
        yield replace(warehouse.connection, login="hostile", password="secret")
        warehouse.execute("DROP ROLE hostile")
        return
    before = {name: warehouse.execute(f"SELECT @@global.{name}")[0][0] for name in settings}
    warehouse.execute(*(f"SET GLOBAL {name} = {value}" for name, value in settings.items()))
    yield warehouse.connection
    warehouse.execute(*(f"SET GLOBAL {name} = {value!r}" for name, value in before.items()))


def test_a_read_by_jdbc_inherits_no_setting(spark: SparkSession, warehouse: Database) -> None:
    names = HOSTILE[warehouse.kind]
    form = "current_setting('{}')" if warehouse.kind == "postgres" else "CAST(@@session.{} AS CHAR)"
    query = "SELECT " + ", ".join(f"{form.format(name)} AS {name}" for name in names)
    make = PostgresServer if warehouse.kind == "postgres" else MysqlServer
    with hostile(warehouse) as connection:
        server = make(connection, warehouse.schema, "r")
        seen = read_jdbc(spark, server.jdbc(), query, {name: name for name in names}).collect()[0].asDict()
        with server.session("read") as own:
            cursor = own.cursor()
            cursor.execute(query)
            expected = dict(zip(names, map(str, cursor.fetchone()), strict=True))
    assert seen == expected
