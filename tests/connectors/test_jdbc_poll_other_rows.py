"""Tables under whose name a server also returns the rows of other tables."""

from __future__ import annotations

import pymysql
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.conftest import Database
from tests.connectors.polled_database import Polling, images

pytestmark = pytest.mark.server

STAMP = "updated_at timestamptz NOT NULL DEFAULT now() - interval '1 minute'"


def of(database: Database) -> Polling:
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    return Polling("postgresql+psycopg", info, key_audit=86400)


def test_the_rows_of_inheritance_children_are_no_rows_of_their_parent(database: Database) -> None:
    database.sql(
        f"CREATE TABLE p (id int PRIMARY KEY, v text, {STAMP})",
        "CREATE TABLE c () INHERITS (p)",
        "INSERT INTO p VALUES (1, 'parent')",
        "INSERT INTO c VALUES (1, 'child')",
    )
    polling = of(database)
    polling.position = polling.source.open_stream(["public.p"])
    task = polling.task("public.p")
    copy = polling.copy(task)
    assert copy.rows == 1
    assert [row["v"] for row in polling.rows["public.p"].values()] == ["parent"]
    assert [row["v"] for _, row in images(polling.window(task))] == ["parent"]
    database.sql("DELETE FROM ONLY p")
    assert not polling.source.status(polling.position, ["public.p"]).has_changes


def test_a_partitioned_table_has_the_rows_of_its_partitions(database: Database) -> None:
    database.sql(
        f"CREATE TABLE p (id int PRIMARY KEY, v text, {STAMP}) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "INSERT INTO p VALUES (1, 'low')",
    )
    polling = of(database)
    polling.position = polling.source.open_stream(["public.p"])
    task = polling.task("public.p")
    assert polling.copy(task).rows == 1
    assert [row["v"] for row in polling.rows["public.p"].values()] == ["low"]
    assert [row["v"] for _, row in images(polling.window(task))] == ["low"]


def test_the_key_of_a_table_that_reads_others_proves_nothing(mariadb: EmbeddedMariaDB) -> None:
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    columns = "(id int NOT NULL, v varchar(9), updated_at timestamp(6) NOT NULL, {key} (id), INDEX (updated_at))"
    with pymysql.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:  # type: ignore[call-overload]
        cursor.execute("CREATE DATABASE merged")
        for name in ("a", "b"):
            cursor.execute(f"CREATE TABLE merged.{name} {columns.format(key='PRIMARY KEY')} ENGINE=MyISAM")
            cursor.execute(f"INSERT INTO merged.{name} VALUES (1, '{name}', now(6) - interval 60 second)")
        for name, key in (("primary_key", "PRIMARY KEY"), ("unique_key", "UNIQUE")):
            merge = "ENGINE=MERGE UNION=(merged.a, merged.b)"
            cursor.execute(f"CREATE TABLE merged.{name} {columns.format(key=key)} {merge}")
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "merged")
    polling = Polling("mysql+pymysql", info, key_audit=86400)
    polling.position = polling.source.open_stream(["merged.a"])
    assert polling.source.check([polling.task("merged.a")]) == []
    for name in ("merged.primary_key", "merged.unique_key"):
        task = polling.task(name, key=("id",))
        (problem,) = polling.source.check([task])
        assert problem.code == "SRC063" and "MRG_MyISAM" in problem.found
        with pytest.raises(CheckFailed, match="SRC063"):
            polling.copy(task)
