"""A row filter selects the rows of a plain comparison in Python, whatever the server's types and collations are: in a
window and in a copy, which a key audit and a comparison read, too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql
import pytest

from airflow_cdc_provider.connectors.key_ranges import KeyRange
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, Scalar
from airflow_cdc_provider.core.spec.filters import InvalidDate, OutOfRange, matches
from airflow_cdc_provider.core.table.schema import Kind
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.conftest import Database
from tests.connectors.polled_database import Polling, images

POSTGRES, MARIADB, SQLITE = "postgresql+psycopg", "mysql+pymysql", "sqlite"
OTHERS = (Comparison.NOT_EQUAL, Comparison.LESS_OR_EQUAL, Comparison.GREATER, Comparison.GREATER_OR_EQUAL)
TEXTS = ("open", "OPEN", "open  ", "\u00f6pen", "", "Zz", "a", "A")
UUIDS = ("6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11", "FFFFFFFF-0000-0000-0000-000000000000")
AT, ZONED = datetime(2024, 2, 1, 10), datetime(2024, 2, 1, 10, tzinfo=UTC)
QUARTER = timedelta(microseconds=250_000)
SINGLE = 0.10000000149011612
"""The double of the single-precision number 0.1."""


@dataclass(frozen=True)
class Of:
    """A column: its declaration, its stored values with those that are read, and operands of conditions."""

    declared: str
    values: Sequence[Any]
    operands: Sequence[Scalar]
    read: Sequence[Any] = ()


def texts(declared: str, read: Callable[[str], str] = str) -> Of:
    return Of(declared, TEXTS, ("open", "open  ", "Z", "\u2603"), [read(text) for text in TEXTS])


NUMBERS = {
    "n": Of("int", (1, 2, 3), (2, 1.5, 2.5, 3_000_000_000)),
    "f": Of("double precision", (0.1, 0.5, -1e300), (0.1, 0.5)),
    "d": Of("decimal(10,2)", ("1.10", "2.00", "-0.01"), (1.1, 2, 1.105), [Decimal(d) for d in ("1.10", "2", "-0.01")]),
}
COLUMNS: dict[str, dict[str, Of]] = {
    POSTGRES: {
        **NUMBERS,
        "r": Of("real", (0.1, 0.5), (0.1, 0.5)),
        "nan": Of("double precision", ("NaN", "1"), (1.0, float("nan")), (float("nan"), 1.0)),
        "dnan": Of("decimal(10,2)", ("NaN", "1"), (1,), (None, Decimal(1))),
        "free": Of("numeric", ("1.0", "1.00"), ("1.0", "1")),
        "b": Of("boolean", (True, False), (True,)),
        "t": texts("text"),
        "v": texts("varchar(9)"),
        "c": texts("char(6)", lambda text: f"{text:6}"),
        "day": Of("date", ("infinity", "2024-02-01", "0044-03-15 BC"), ("2024-02-01",),
                  (OutOfRange(Kind.DATE, True), date(2024, 2, 1), OutOfRange(Kind.DATE, False))),
        "at": Of("timestamp(0)", (AT, AT + timedelta(seconds=1)), ("2024-02-01T10:00:00", "2024-02-01T10:00:00.6")),
        "zoned": Of("timestamptz", (ZONED, ZONED + QUARTER), ("2024-02-01T11:00:00+01:00", "2024-02-01T10:00:00.25")),
        "u": Of("uuid", UUIDS, UUIDS, [text.lower() for text in UUIDS]),
        "j": Of("jsonb", ('{"b": 1}', '{"a":1}'), ('{"a":1}', '{"a": 1}'), ('{"b": 1}', '{"a": 1}')),
        "net": Of("inet", ("10.0.0.1", "9.0.0.1"), ("10.0.0.1", "10.0.0.1/32"), ("10.0.0.1/32", "9.0.0.1/32")),
    },
    MARIADB: {
        **NUMBERS,
        "r": Of("float", (0.1, 0.5), (0.1, SINGLE, 0.5), (SINGLE, 0.5)),
        "big": Of("bigint unsigned", (2**64 - 1, 1), (1, 2**63), (Decimal(2**64 - 1), Decimal(1))),
        "t": texts("text CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
        "latin": texts("varchar(9) CHARACTER SET latin1"),
        "bin": texts("varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
        "c": texts("char(6) CHARACTER SET utf8mb4", str.rstrip),
        "e": Of("enum('z', 'a', 'B')", ("z", "a", "B"), ("a", "b", "A")),
        "s": Of("set('x', 'y')", ("x", "y,x", ""), ("x,y", "X"), ("x", "x,y", "")),
        "day": Of("date", ("0000-00-00", "2024-02-01", "2024-00-10"), ("2024-02-01",),
                  (InvalidDate(Kind.DATE, "0000-00-00"), date(2024, 2, 1), InvalidDate(Kind.DATE, "2024-00-10"))),
        "at": Of("datetime", (AT, AT + timedelta(seconds=1)), ("2024-02-01T10:00:00", "2024-02-01T10:00:00.6")),
        "zoned": Of("timestamp(6) NULL", ("2024-02-01 10:00:00", "2024-02-01 10:00:00.25"),
                    ("2024-02-01T11:00:00+01:00", "2024-02-01T10:00:00.25"), (ZONED, ZONED + QUARTER)),
        "j": Of("json", ('{"b": 1}', '{"a":1}'), ('{"a":1}',)),
    },
    SQLITE: {
        **NUMBERS,
        "b": Of("boolean", (True, False), (True,)),
        "t": texts("text COLLATE NOCASE"),
        "v": texts("varchar(9) COLLATE RTRIM"),
        "c": texts("char(6)"),
        "day": Of("date", ("2024-02-01", "2024-01-31"), ("2024-02-01",), (date(2024, 2, 1), date(2024, 1, 31))),
        "at": Of("datetime", ("2024-02-01 10:00:00", "2024-02-01T10:00:00.250Z", "2024-02-01 10:00:00.250000"),
                 ("2024-02-01T10:00:00", "2024-02-01T10:00:00.25"), (AT, AT + QUARTER, AT + QUARTER)),
    },
}  # fmt: skip
ROWS = len(TEXTS) + 1
"""The last row has no values."""


def stored(column: Of) -> list[Any]:
    return [*column.values, *[None] * (ROWS - len(column.values))]


def read(column: Of) -> list[Any]:
    values = [*(column.read or column.values)]
    return [*values, *[None] * (ROWS - len(values))]


def conditions(name: str, column: Of) -> Iterator[Condition]:
    yield Condition(name, Comparison.IS_NULL)
    yield Condition(name, Comparison.IS_NOT_NULL)
    for operator in (Comparison.IN, Comparison.NOT_IN):
        yield Condition(name, operator, tuple(column.operands))
    for operand in column.operands:
        yield from (Condition(name, operator, operand) for operator in (Comparison.EQUAL, Comparison.LESS))
    yield from (Condition(name, operator, column.operands[0]) for operator in OTHERS)


def statements(driver: str, table: str, stamp: str) -> str:
    columns = ", ".join(f"{name} {column.declared}" for name, column in COLUMNS[driver].items())
    return f"CREATE TABLE {table} (id integer PRIMARY KEY NOT NULL, {columns}, updated_at {stamp})"


def rows(driver: str, mark: str, table: str, now: str) -> tuple[str, list[tuple[Any, ...]]]:
    columns = COLUMNS[driver]
    marks = ", ".join([mark] * (len(columns) + 1))
    values = list(zip(range(ROWS), *(stored(column) for column in columns.values()), strict=True))
    return f"INSERT INTO {table} VALUES ({marks}, {now})", values


def of_postgres(database: Database, schema: str = "public") -> Polling:
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    return Polling(POSTGRES, info, key_audit=86400, timestamp_latency=3600, schemas=[schema])


def of_mariadb(mariadb: EmbeddedMariaDB, schema: str) -> Polling:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, schema)
    return Polling(MARIADB, info, key_audit=86400, timestamp_latency=3600, schemas=[schema])


def assert_filtered(polling: Polling, table: str, driver: str) -> None:
    """Only the key is copied: a value that no target has would stop its row. A filter reads what is left out."""
    source, start = polling.source, polling.source.open_stream([table])
    whole = polling.task(table, columns=Columns(exclude=(*COLUMNS[driver], "updated_at")))
    (split,) = source.splits(start, source.status(start, [table]).limit)
    for name, column in COLUMNS[driver].items():
        for condition in conditions(name, column):
            task = replace(whole, rule=replace(whole.rule, where=(condition,)))
            polled = {row["id"] for op, row in images(list(source.read(split, [task], 1))) if op != "delete"}
            parts = source.read_split(KeyRange(None, None, (condition,)).text(), task.schema)
            copied = {row["id"] for part in parts for row in part.to_pylist()}
            wanted = {number for number, value in enumerate(read(column)) if matches([condition], {name: value})}
            assert polled == copied == wanted, f"{driver} {name} {condition}: {polled} {copied} {wanted}"


@pytest.mark.server
def test_postgresql(database: Database) -> None:
    database.sql(statements(POSTGRES, "kinds", "timestamptz NOT NULL"))
    statement, values = rows(POSTGRES, "%s", "kinds", "now() - interval '1 minute'")
    with database.connect() as connection:
        connection.cursor().executemany(statement, values)
    assert_filtered(of_postgres(database), "public.kinds", POSTGRES)


@pytest.mark.server
def test_mariadb(mariadb: EmbeddedMariaDB) -> None:
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    with pymysql.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:  # type: ignore[call-overload]
        cursor.execute("CREATE DATABASE poll_filters")
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(statements(MARIADB, "poll_filters.kinds", "timestamp(6) NOT NULL"))
        statement, values = rows(MARIADB, "%s", "poll_filters.kinds", "now(6) - interval 60 second")
        cursor.executemany(statement, values)
    assert_filtered(of_mariadb(mariadb, "poll_filters"), "poll_filters.kinds", MARIADB)


def sqlite(path: Path) -> Polling:
    with sqlite3.connect(path) as connection:
        connection.execute(statements(SQLITE, "kinds", "datetime NOT NULL"))
        connection.executemany(*rows(SQLITE, "?", "kinds", "datetime('now', '-1 minute')"))
    connection.close()
    return Polling(SQLITE, ConnectionInfo("db", schema=str(path)), key_audit=86400, timestamp_latency=3600)


def test_sqlite(tmp_path: Path) -> None:
    assert_filtered(sqlite(tmp_path / "kinds.db"), "main.kinds", SQLITE)


def test_an_operand_that_its_column_cannot_have_is_refused(tmp_path: Path) -> None:
    polling = sqlite(tmp_path / "kinds.db")
    polling.position = polling.source.open_stream(["main.kinds"])
    task = polling.task("main.kinds", where=[Condition("day", Comparison.EQUAL, "yesterday")])
    assert "SRC018" in [problem.code for problem in polling.source.check([task])]
    for act in (polling.window, polling.copy):
        with pytest.raises(CheckFailed, match="SRC018"):
            act(task)
