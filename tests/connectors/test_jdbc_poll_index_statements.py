"""Statements that a remedy names are those of the system at hand."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.index_statements import create_index, prove_key
from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type

COLUMNS = tuple(Column(name, parse_type("int32")) for name in ("id", "Big k"))


def table(namespace: str, unenforced: bool = False) -> PolledTable:
    schema = TableSchema(f"{namespace}.t", COLUMNS, ("id",))
    return PolledTable(namespace, "t", schema, {}, frozenset(), {}, unenforced_key=unenforced)


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        (postgresql, 'CREATE UNIQUE INDEX unique_t ON s.t (id, "Big k")'),
        (mysql, "CREATE UNIQUE INDEX unique_t ON s.t (id, `Big k`)"),
        (mssql, "CREATE UNIQUE INDEX unique_t ON s.t (id, [Big k])"),
        (oracle, 'CREATE UNIQUE INDEX s.unique_t ON s.t (id, "Big k")'),
        (sqlite, 'CREATE UNIQUE INDEX s.unique_t ON t (id, "Big k")'),
    ],
)
def test_an_index_has_a_name_and_the_quotes_of_its_system(dialect: Any, statement: str) -> None:
    assert create_index(dialect.dialect(), table("s"), ("id", "Big k"), unique=True) == statement
    assert create_index(dialect.dialect(), table("s"), ("id",)).startswith("CREATE INDEX ")


def test_sqlite_runs_the_statement() -> None:
    with sa.create_engine("sqlite://").connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER)")
        connection.exec_driver_sql(create_index(connection.dialect, table("main"), ("id",), unique=True))
        assert sa.inspect(connection).get_indexes("t")[0]["unique"]


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        (mssql, "ALTER INDEX ALL ON s.t REBUILD"),
        (oracle, "ALTER TABLE s.t ENABLE VALIDATE PRIMARY KEY"),
        (postgresql, "ATTACH PARTITION"),
    ],
)
def test_an_unenforced_primary_key_is_enforced_instead_of_another_index(dialect: Any, words: str) -> None:
    key, other = prove_key(dialect.dialect(), table("s", unenforced=True), ("id",)), ("Big k",)
    assert words in key and "CREATE" not in key
    assert "CREATE UNIQUE INDEX" in prove_key(dialect.dialect(), table("s", unenforced=True), other)
