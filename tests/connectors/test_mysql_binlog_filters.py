"""Databases that the server leaves out of its binlog: neither ``check`` nor a run may take their silence for rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from airflow_cdc_provider.connectors.sources.mysql.source import MysqlSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.mariadb import embedded

pytestmark = pytest.mark.server


@contextmanager
def served(**settings: str) -> Iterator[MysqlSource]:
    """A source with the tables ``shop.t`` and ``other.t``."""
    with embedded(**settings) as server:
        login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        with pymysql.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:  # type: ignore[arg-type]
            for database in ("shop", "other"):
                cursor.execute(f"CREATE DATABASE {database}")
                cursor.execute(f"CREATE TABLE {database}.t (id int PRIMARY KEY)")
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password)
        yield MysqlSource(Source("mysql", "db", options={"databases": ("shop", "other")}), info, "shop")


def tasks(source: MysqlSource) -> list[TableTask]:
    return [
        TableTask(one.table, "t", one, TableRule(one.table), "", TableState.PENDING)
        for one in source.tables()
        if one.table in ("shop.t", "other.t")
    ]


@pytest.mark.parametrize("setting", [{"binlog_ignore_db": "shop"}, {"binlog_do_db": "other"}])
def test_a_database_that_the_binlog_leaves_out_is_refused_and_another_one_is_not(setting: dict[str, str]) -> None:
    with served(**setting) as source:
        refused = source.refused(tasks(source))
        assert {table: problem.code for table, problem in refused.items()} == {"shop.t": "SRC171"}
        ((name, value),) = setting.items()
        assert refused["shop.t"].found == f"{name} = {value}"
        assert source.filtered(tasks(source)) == {"shop.t": f"{name} = {value}"}
        assert [one.code for one in source.check(tasks(source)) if one.table == "shop.t"] == ["SRC171"]


def test_without_filters_nothing_is_refused() -> None:
    with served() as source:
        assert source.refused(tasks(source)) == {} == source.filtered(tasks(source))
