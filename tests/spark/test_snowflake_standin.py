"""What the stand-in for Snowflake cannot do, or does otherwise than Snowflake's documentation says. No other test may
rely on it. A case that fails is a difference that has gone: remove it, here and in the guide."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import snowflake.connector

from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.staging.open_store import open_store
from tests.buckets import Moto

pytestmark = pytest.mark.server

TABLE = ("CREATE TABLE T (ID INT, V VARCHAR)", "INSERT INTO T VALUES (1, 'a')", "CREATE TABLE S (ID INT, V VARCHAR)")
LIMIT_S = 2
"""The client repeats a request that fails inside the stand-in."""


@contextmanager
def session(server: EmbeddedSnowflake) -> Iterator[Any]:
    """A cursor in a schema of its own."""
    info, schema = server.connection, f"D{uuid.uuid4().hex.upper()}"
    login = {"user": info.login, "password": "any", "port": info.port, "network_timeout": LIMIT_S, **info.extra}
    with snowflake.connector.connect(**login) as connection:
        cursor = connection.cursor()
        for statement in ("CREATE DATABASE IF NOT EXISTS DIFFERENCES", f"CREATE SCHEMA DIFFERENCES.{schema}"):
            cursor.execute(statement)
    with snowflake.connector.connect(**login, database="DIFFERENCES", schema=schema) as connection:
        yield connection.cursor()


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param((*TABLE, "BEGIN", "MERGE INTO T USING S ON T.ID = S.ID WHEN MATCHED THEN DELETE"), id="MERGE"),
        pytest.param(("EXECUTE IMMEDIATE $$ BEGIN RETURN 1; END $$",), id="Snowflake Scripting"),
        pytest.param(("CREATE STAGE F", "DROP STAGE F"), id="DROP STAGE"),
        pytest.param((*TABLE, "GRANT SELECT ON TABLE T TO ROLE READER"), id="GRANT"),
        pytest.param((*TABLE, "DROP TABLE T"), id="DROP TABLE by a name of one part"),
        pytest.param(
            ("CREATE TABLE N (V NUMBER(38,0))", "INSERT INTO N VALUES (99999999999999999999)"),
            id="an integer of more than 64 bits",
        ),
    ],
)
def test_statements_that_fail(snowflake_server: EmbeddedSnowflake, statements: tuple[str, ...]) -> None:
    *before, last = statements
    with session(snowflake_server) as cursor:
        for statement in before:
            cursor.execute(statement)
        with pytest.raises(snowflake.connector.errors.Error):
            cursor.execute(last)


def test_a_copy_from_a_url_with_credentials_fails_and_by_a_stage_works(
    snowflake_server: EmbeddedSnowflake, warehouse_store: Moto, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"ID": [1]}), path)
    store = open_store(f"s3://{warehouse_store.LAKE}/differences", warehouse_store.connection)
    store.write("rows.parquet", path.read_bytes())
    login, url = warehouse_store.connection, store.url("rows.parquet")
    key = f"CREDENTIALS = (AWS_KEY_ID = '{login.login}' AWS_SECRET_KEY = '{login.password}')"
    with session(snowflake_server) as cursor:
        cursor.execute("CREATE TABLE L (ID INT)")
        with pytest.raises(snowflake.connector.errors.Error):
            cursor.execute(f"COPY INTO L FROM '{url}' {key} FILE_FORMAT = (TYPE = PARQUET)")
        cursor.execute(f"CREATE STAGE F URL = '{store.url('').rstrip('/')}'")
        rows = "(SELECT $1:ID::INT FROM @F)"
        cursor.execute(f"COPY INTO L (ID) FROM {rows} FILES = ('rows.parquet') FILE_FORMAT = (TYPE = PARQUET)")
        assert cursor.execute("SELECT * FROM L").fetchall() == [(1,)]


def test_a_time_with_a_zone_loses_its_offset(snowflake_server: EmbeddedSnowflake) -> None:
    with session(snowflake_server) as cursor:
        (found,) = cursor.execute("SELECT '2025-01-01 12:00:00 +02:00'::TIMESTAMP_TZ").fetchone()
    assert (found.hour, found.utcoffset()) == (10, timedelta(0))


def test_a_sum_of_decimals_is_a_float(snowflake_server: EmbeddedSnowflake) -> None:
    with session(snowflake_server) as cursor:
        cursor.execute("CREATE TABLE N (V NUMBER(12,2))")
        cursor.execute("INSERT INTO N VALUES (1.10), (2.20)")
        (found,) = cursor.execute("SELECT SUM(V) FROM N").fetchone()
    assert isinstance(found, float)


def test_a_copy_by_names_into_columns_in_lower_case_loads_null(
    snowflake_server: EmbeddedSnowflake, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"v": ["a"]}), path)
    with session(snowflake_server) as cursor:
        cursor.execute("CREATE STAGE F")
        cursor.execute(f"PUT 'file://{path}' @F AUTO_COMPRESS = FALSE")
        cursor.execute('CREATE TABLE L ("v" VARCHAR)')
        cursor.execute("COPY INTO L FROM @F FILE_FORMAT = (TYPE = PARQUET) MATCH_BY_COLUMN_NAME = CASE_SENSITIVE")
        assert cursor.execute("SELECT * FROM L").fetchall() == [(None,)]
