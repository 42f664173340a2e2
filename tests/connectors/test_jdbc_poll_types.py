"""Each class of types of each system that can be polled is copied as what it is, or refused."""

from __future__ import annotations

import importlib
import inspect
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.check import require_pageable
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Select
from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import RowConverter
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import TableQueries
from airflow_cdc_provider.connectors.sources.jdbc_poll.types import REFUSED, TYPES, source_type
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import column_value
from airflow_cdc_provider.connectors.sources.polling.pages import Query, read_pages
from airflow_cdc_provider.connectors.sources.polling.positions import PageEnd
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition
from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.conftest import Database
from tests.connectors.polled_database import Polling, images
from tests.mariadb import IS_MYSQL, series

DIALECTS: dict[str, Any] = {
    "postgresql": postgresql.dialect,
    "mysql": mysql.dialect,
    "oracle": oracle.dialect,
    "mssql": mssql.dialect,
    "sqlite": sqlite.dialect,
}
NOT_COPIED: dict[str, set[str]] = {
    "postgresql": {"AbstractMultiRange", "AbstractRange", "AbstractSingleRange", "NamedType"},
    "mysql": {"NullType"},
    "oracle": {"NullType", "BFILE", "INTERVAL", "JSON", "LONG", "ROWID", "VECTOR"},
    "mssql": {"NullType", "JSON", "SQL_VARIANT"},
    "sqlite": {"NullType", "JSONB"},
}
"""By name, on purpose: base classes, and types whose values cannot be read exactly."""


def classes_of(system: str) -> set[type[Any]]:
    """All that the dialect exports and reflects."""
    module = importlib.import_module(f"sqlalchemy.dialects.{system}")
    exported = {one for _, one in inspect.getmembers(module, inspect.isclass) if issubclass(one, sa.types.TypeEngine)}
    return exported | set(DIALECTS[system].ischema_names.values()) | {sa.types.NullType}


@pytest.mark.parametrize("system", DIALECTS)
def test_every_class_of_a_system_is_mapped_or_refused_on_purpose(system: str) -> None:
    classes = classes_of(system)
    assert {one.__name__ for one in classes - TYPES[system].keys()} == NOT_COPIED[system]
    assert TYPES[system].keys() - classes <= {sa.INTEGER, sa.UUID, sa.String}


@pytest.mark.parametrize("system", DIALECTS)
def test_a_subclass_is_not_its_parent(system: str) -> None:
    """A library or another version may have a class that behaves in another way."""
    for parent in TYPES[system]:
        assert source_type(type("Other", (parent,), {}).__new__(type("Other", (parent,), {})), system) == REFUSED


@pytest.mark.parametrize(
    ("system", "kind", "logical"),
    [
        ("oracle", oracle.NUMBER(12, 2), "decimal(12,2)"),
        ("oracle", oracle.NUMBER(10, 0), "decimal(10,0)"),
        ("oracle", oracle.NUMBER(38, 10), "decimal(38,10)"),
        ("oracle", oracle.NUMBER(5, -2), "decimal(7,0)"),
        ("oracle", oracle.NUMBER(2, 5), "decimal(5,5)"),
        ("oracle", oracle.NUMBER(), "text"),
        ("oracle", oracle.NUMBER(38, -10), "text"),
        ("oracle", sa.INTEGER(), "decimal(38,0)"),
        ("oracle", oracle.FLOAT(binary_precision=126), "text"),
        ("oracle", oracle.DATE, "timestamp"),
        ("oracle", oracle.TIMESTAMP(timezone=True), "timestamptz"),
        ("oracle", oracle.TIMESTAMP(local_timezone=True), "timestamptz"),
        ("oracle", oracle.TIMESTAMP(), "timestamp"),
        ("oracle", oracle.RAW(16), "bytes"),
        ("mssql", mssql.DATETIMEOFFSET(7), "timestamptz"),
        ("mssql", mssql.DATETIME2(7), "timestamp"),
        ("mssql", mssql.TINYINT(), "int16"),
        ("mssql", mssql.MONEY(), "decimal(19,4)"),
        ("mssql", mssql.SMALLMONEY(), "decimal(10,4)"),
        ("mssql", mssql.TIMESTAMP(), "bytes"),
        ("mssql", mssql.IMAGE(), "bytes"),
        ("mysql", mysql.LONGBLOB(), "bytes"),
        ("mysql", mysql.BIGINT(unsigned=True), "decimal(20,0)"),
        ("mysql", mysql.TIMESTAMP(), "timestamptz"),
        ("mysql", mysql.DECIMAL(65, 30), "text"),
        ("postgresql", postgresql.TIMESTAMP(timezone=True), "timestamptz"),
        ("postgresql", postgresql.NUMERIC(12, 2), "decimal(12,2)"),
        ("postgresql", postgresql.NUMERIC(), "text"),
        ("sqlite", sqlite.INTEGER(), "int64"),
        ("sqlite", sqlite.DECIMAL(12, 2), "decimal(12,2)"),
    ],
)
def test_a_type_is_what_it_is_in_its_system(system: str, kind: Any, logical: str) -> None:
    found = source_type(kind, system)
    assert str(found.type) == logical and found.select is not Select.REFUSED


def queries(system: str, **types: Any) -> TableQueries:
    columns = tuple(Column(name, source_type(kind, system).type) for name, kind in types.items())
    schema = TableSchema("s.t", columns, ("id",))
    described = PolledTable("s", "t", schema, types, frozenset(), {})
    return TableQueries(described, schema, "at", timedelta(0), system)


def test_numbers_of_oracle_keep_their_digits() -> None:
    asked = queries(
        "oracle", id=oracle.NUMBER(10, 0), price=oracle.NUMBER(12, 2), free=oracle.NUMBER(), at=oracle.DATE()
    )
    row = (7, Decimal("12.50"), Decimal("1E+3"), datetime(2026, 2, 1, 10), 7, datetime(2026, 2, 1, 10))
    assert RowConverter(asked).page_row(row).image == (
        '{"id":"7","price":"12.50","free":"1000","at":"2026-02-01T10:00:00"}'
    )
    assert RowConverter(asked).table([row]).to_pylist()[0]["price"] == Decimal("12.50")


def test_an_offset_of_sql_server_is_kept() -> None:
    asked = queries("mssql", id=mssql.INTEGER(), at=mssql.DATETIMEOFFSET(7))
    noon = datetime(2026, 2, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert RowConverter(asked).page_row((1, noon, 1, noon)).image == '{"id":1,"at":"2026-02-01T10:00:00Z"}'
    moment = datetime(2026, 2, 1, 10, tzinfo=UTC)
    assert asked.timestamp_parameter(moment) == moment


def test_sql_server_compares_parameters_in_the_types_of_their_columns() -> None:
    """A ``datetime`` of 3.33 ms is read as 3 ms, which is another ``datetime2``: a tie would not be found."""
    asked = queries("mssql", id=mssql.REAL(), day=mssql.SMALLDATETIME(), no=mssql.INTEGER(), at=mssql.DATETIME())
    asked = replace(asked, schema=replace(asked.schema, key=("id", "day", "no")))
    last = datetime(2026, 2, 1, 10, 0, 0, 3000, tzinfo=UTC)
    query = Query(last, last, 10, PageEnd(last, '[0.1,"2026-02-01T10:00:00",7]'))
    text = str(asked.page(query).compile(dialect=mssql.dialect()))
    compared = re.findall(r"(\w+) (?:=|<|>|<=|>=) (CAST\(\S+ AS \w+\))?", text.partition("WHERE")[2])
    assert {name for name, cast in compared if cast} == {"at", "id", "day"}
    assert {name for name, cast in compared if not cast} == {"no"}
    for statement in (asked.any_row(query, True), asked.any_row_before(query, [])):
        assert re.search(r"at <=? CAST\(\S+ AS DATETIME\)", str(statement.compile(dialect=mssql.dialect())))
    other = queries("mysql", id=mysql.INTEGER(), at=mysql.DATETIME())
    text = str(other.page(replace(query, after=PageEnd(last, "[7]"))).compile(dialect=mysql.dialect()))
    assert "CAST" not in text.partition("WHERE")[2]
    chosen = replace(asked, where=(Condition("at", Comparison.LESS, "2026-02-01T10:00:00.001"),))
    assert "WHERE" not in str(chosen.rows().compile(dialect=mssql.dialect())), "it is no value of the column"


def test_oracle_converts_a_zoned_timestamp_because_its_driver_drops_the_zone() -> None:
    asked = queries("oracle", id=oracle.NUMBER(10, 0), at=oracle.TIMESTAMP(timezone=True))
    text = str(asked.rows().compile(dialect=oracle.dialect()))
    assert "sys_extract_utc" in text
    assert asked.timestamp_parameter(datetime(2026, 2, 1, 10, tzinfo=UTC)) == datetime(2026, 2, 1, 10)


def test_a_column_that_cannot_be_copied_is_named_and_can_be_left_out() -> None:
    asked = queries("mssql", id=mssql.INTEGER(), at=mssql.DATETIME2(), any=mssql.SQL_VARIANT())
    with pytest.raises(CheckFailed, match=r"SRC118.*any \(SQL_VARIANT") as caught:
        require_pageable(asked)
    assert caught.value.problems[0].columns == ("any",)
    require_pageable(queries("mssql", id=mssql.INTEGER(), at=mssql.DATETIME2()))


@pytest.mark.parametrize(("kind", "value"), [("int64", 12.5), ("int64", Decimal("12.5")), ("decimal(12,2)", 0.125)])
def test_a_number_is_never_cut(kind: str, value: Any) -> None:
    with pytest.raises(Unrepresentable, match="more digits"):
        column_value(parse_type(kind), value)


def test_types_of_mariadb_are_the_same_in_copy_and_interval_or_are_refused(mariadb: EmbeddedMariaDB) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "kinds")
    with pymysql.connect(
        host=info.host, port=info.port or 0, user=info.login, password=info.password, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE kinds")
        own = "uid uuid, four inet4, six inet6," if not IS_MYSQL else "uid char(36), four varchar(9), six varchar(9),"
        cursor.execute(
            f"CREATE TABLE kinds.t (id int PRIMARY KEY, {own} big longblob, small tinyblob, bits bit(9), span time(3), "
            "y year, tags set('x','y'), n decimal(65,30), r real, at datetime(6), shape point, updated_at timestamp(6))"
        )
        cursor.execute(
            "INSERT INTO kinds.t VALUES (1, '6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11', '10.0.0.1', '::1', x'00ff', x'80', "
            "b'100000001', '-100:00:00.5', 2026, 'x,y', 1.5, 0.1, '2026-02-01 10:00:00.25', point(1, 2), "
            "utc_timestamp(6) - interval 60 second)"
        )
    polling = Polling("mysql+pymysql", info)
    polling.position = polling.source.open_stream(["kinds.t"])
    with pytest.raises(CheckFailed, match=r"SRC118.*shape"):
        polling.copy(polling.task("kinds.t"))
    assert "SRC118" in [problem.code for problem in polling.source.check([polling.task("kinds.t")])]
    task = polling.task("kinds.t", columns=Columns(exclude=("shape",)))
    polling.copy(task)
    ((_, row),) = images(polling.window(task))
    assert row | {"updated_at": ""} == {
        "id": 1, "uid": "6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11", "four": "10.0.0.1", "six": "::1", "big": "AP8=",
        "small": "gA==", "bits": "AQE=", "span": "-100:00:00.500", "y": "2026", "tags": "x,y",
        "n": "1.500000000000000000000000000000", "r": 0.1, "at": "2026-02-01T10:00:00.250000", "updated_at": "",
    }  # fmt: skip
    copied = polling.rows["kinds.t"]["[1]"]
    assert (copied["big"], copied["small"], copied["bits"]) == (b"\x00\xff", b"\x80", b"\x01\x01")
    assert (copied["uid"], copied["span"], copied["y"]) == (row["uid"], row["span"], row["y"])


def test_types_of_postgresql_are_read_as_the_server_prints_them(database: Database) -> None:
    database.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN short AS text CHECK (length(value) < 9)",
        "CREATE TABLE t (mood mood, id int, p pair, s short, path jsonpath, r int4range, m datemultirange, "
        "o oid, c regclass, b bit(3), pt point, updated_at timestamptz DEFAULT now() - interval '1 min', "
        "PRIMARY KEY (mood, id))",
        "INSERT INTO t VALUES ('happy', 1, (1, 'x y'), 'abc', '$.a', '[1,3)', '{[2026-01-01,2026-01-03)}', 4294967295, "
        "'t', B'101', '(1,2)')",
        "INSERT INTO t (mood, id) VALUES ('sad', 1)",
    )
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    polling = Polling("postgresql+psycopg", info, page_rows=100, timestamp_latency=120)
    polling.position = polling.source.open_stream(["public.t"])
    task = polling.task("public.t")
    polling.copy(task)
    (_, happy), (_, sad) = images(polling.window(task))
    assert sad["mood"] == "sad" and happy | {"updated_at": ""} == {
        "mood": "happy", "id": 1, "p": '(1,"x y")', "s": "abc", "path": '$."a"', "r": "[1,3)",
        "m": "{[2026-01-01,2026-01-03)}", "o": "4294967295", "c": "public.t", "b": "101", "pt": "(1,2)",
        "updated_at": "",
    }  # fmt: skip
    assert polling.rows["public.t"]['["happy", 1]']["p"] == happy["p"]


LISTED = "updated_at timestamptz DEFAULT timestamptz '2026-01-01 00:00Z'"
KEYS = {
    "int[]": "ARRAY[n]",
    "int4range": "int4range(n, n + 1)",
    "interval": "n * interval '1 hour'",
    "oid": "n::oid",
    "numeric": "n::numeric / 3",
    "real": "(n / 9)::real / 3",
    "mood": "(ARRAY['sad', 'happy', 'calm'])[1 + n % 3]::mood",
}


@pytest.mark.parametrize("kind", KEYS)
def test_pages_follow_a_key_of_any_type_of_postgresql(database: Database, kind: str) -> None:
    database.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'happy', 'calm')",
        f"CREATE TABLE t (k {kind}, j int, {LISTED}, PRIMARY KEY (k, j))",
        f"INSERT INTO t (k, j) SELECT {KEYS[kind]}, n FROM generate_series(1, 950) n",
    )
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    assert keys_by_pages(Polling("postgresql+psycopg", info, page_rows=100), "public.t") == (950, 950)


@pytest.mark.parametrize("kind", ["enum('z', 'm', 'a')", "set('z', 'm', 'a')", "decimal(60, 30)", "float", "time"])
def test_pages_follow_a_key_of_any_type_of_mariadb(mariadb: EmbeddedMariaDB, kind: str) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "paged")
    with pymysql.connect(
        host=info.host, port=info.port or 0, user=info.login, password=info.password, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE IF NOT EXISTS paged")
        cursor.execute(
            f"CREATE OR REPLACE TABLE paged.t (k {kind}, j int, PRIMARY KEY (k, j), "
            "updated_at datetime(6) DEFAULT '2026-01-01')"
        )
        value = "1 + n % 3" if "'" in kind else "(n DIV 9) / 3" if kind != "time" else "sec_to_time(n DIV 9)"
        cursor.execute(f"INSERT INTO paged.t (k, j) SELECT {value}, n FROM {series(950).replace('seq', 'n')}")
    assert keys_by_pages(Polling("mysql+pymysql", info, page_rows=100, time_zone="UTC"), "paged.t") == (950, 950)


def keys_by_pages(polling: Polling, table: str) -> tuple[int, int]:
    """The number of rows that the pages have, and of keys."""
    begin, end = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    asked = polling.source._queries(table)
    converter = RowConverter(asked)
    with polling.source.database.session() as connection:

        def run(query: Query) -> list[Any]:
            return [converter.page_row(tuple(row)) for row in connection.execute(asked.page(query))]

        pages = list(read_pages(run, Query(begin, end, polling.source.options.page_rows), False))
    keys = [row.key for page in pages for row in page.rows]
    return len(keys), len(set(keys))


def test_a_key_whose_operators_are_not_the_servers_is_refused(database: Database) -> None:
    database.sql(f"CREATE TABLE t (k pg_lsn PRIMARY KEY, {LISTED})", "CREATE INDEX ON t (updated_at)")
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    polling = Polling("postgresql+psycopg", info, key_audit=86400)
    assert [problem.code for problem in polling.source.check([polling.task("public.t")])] == ["SRC063"]
    require_pageable(queries("postgresql", id=postgresql.INTEGER(), at=postgresql.TIMESTAMP(timezone=True)))
    with pytest.raises(CheckFailed, match="SRC063"):
        require_pageable(queries("postgresql", id=postgresql.CITEXT(), at=postgresql.TIMESTAMP(timezone=True)))


class _Unknown(sqlite.base.SQLiteDialect):
    name = "unknown"

    @classmethod
    def import_dbapi(cls) -> Any:
        return sqlite3


def test_a_system_whose_types_are_not_known_is_refused() -> None:
    sa.dialects.registry.register("unknown.driver", __name__, "_Unknown")
    with pytest.raises(CheckFailed, match=r"SRC161.*postgresql"):
        Polling("unknown+driver", ConnectionInfo()).source.tables()
