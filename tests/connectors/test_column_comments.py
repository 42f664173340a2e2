"""The comments of columns in the catalogs of real servers."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll.source import JdbcPollSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors import mysql_database
from tests.connectors.conftest import Database

pytestmark = pytest.mark.server


def test_comments_of_postgresql_are_those_of_present_columns_of_the_table(database: Database) -> None:
    database.sql(
        "CREATE TABLE a (id int PRIMARY KEY, v text, gone text, plain text)",
        "CREATE TABLE b (id int PRIMARY KEY)",
        "CREATE INDEX i ON a (v)",
        "COMMENT ON TABLE a IS 'of the table'",
        "COMMENT ON INDEX i IS 'of the index'",
        "COMMENT ON COLUMN a.id IS 'the key'",
        "COMMENT ON COLUMN a.v IS 'it''s \\ é'",
        "COMMENT ON COLUMN a.gone IS 'gone'",
        "COMMENT ON COLUMN b.id IS 'of b'",
        "ALTER TABLE a DROP gone",
    )
    expected = {"public.a": {"id": "the key", "v": "it's \\ é"}}
    assert database.source.comments(["public.a", "public.absent"]) == expected
    assert database.source.comments([]) == {}
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    options = {"driver": "postgresql+psycopg", "timestamp_column": "t"}
    polled = JdbcPollSource(Source("jdbc_poll", "db", options=options), info, "shop")
    polled.tables()
    assert polled.comments(["public.a", "public.absent"]) == expected


def test_comments_of_mariadb_are_those_of_the_columns_of_the_table(mariadb: EmbeddedMariaDB) -> None:
    shop = mysql_database.Shop(mariadb)
    shop.sql(
        "CREATE TABLE a (id int PRIMARY KEY COMMENT 'the key', v text COMMENT 'it''s \\\\ é', plain text)"
        " COMMENT 'of a'",
        "CREATE TABLE b (id int PRIMARY KEY COMMENT 'of b')",
    )
    found = shop.source.comments([shop.table("a"), shop.table("absent")])
    assert found == {shop.table("a"): {"id": "the key", "v": "it's \\ é"}}
    assert shop.source.comments([]) == {}
