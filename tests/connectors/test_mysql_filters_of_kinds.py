"""Row filters over columns of every kind: a copy and the binlog select the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, Scalar
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Rows, Shop, fold, records
from tests.mariadb import embedded

pytestmark = pytest.mark.server

Case = tuple[str, tuple[Scalar | None, ...], tuple[Scalar, ...]]
BIG, SMALL = 10**18, "0.000000100000000000000000000001"
NUMBERS: tuple[Case, ...] = (
    ("tinyint", (-128, 0, 5, 127), (5, 5.5, -1e30, 1e-7)),
    ("bigint", (-BIG - 1, -BIG, BIG, BIG + 1, None), (1e18, BIG, -1e18, 1e30)),
    ("bigint unsigned", (0, 2**64 - 1, 2**64 - 2), (2**64 - 1, 1e19)),
    ("int(9) zerofill", (7, 70), (7,)),
    ("year", (0, 1999, 2024), (24, 2024)),
    ("decimal(20,3)", ("1.100", "1.101", 10**16), (1.1, "1.1005", 1e16)),
    ("decimal(38,30)", (SMALL, "0.0000001", 0), (SMALL, 1e-31)),
    ("float", (0.1, 0.25, -0.1, 16777217, 3.4e38, 1e-45, 0, None), (0.1, 0.10000000149011612, 16777216)),
    (
        "float COMMENT 'extreme'",
        (0.1, 3.4e38, -3.4e38, 1.1, 33554434),
        (1e39, -1e39, 3.4e38, 1.10000001, 33554432, float("inf")),
    ),
    ("double", (0.1, 1e300, 5e-324, -0.1, None), (0.1, 1e300, 0.1000000001, float("-inf"))),
    ("bit(1)", (1, 0, None), (True,)),
)
TEXTS: tuple[Case, ...] = (
    ("varchar(9)", ("a", "A", "a ", "ä", None), ("a", "ä")),
    ("char(3) CHARACTER SET latin1", ("a", "é"), ("a", "é")),
    ("enum('b','a')", ("b", "a"), ("a", "aa")),
    ("set('b','a')", ("b", "a,b", ""), ("b,a", "")),
    ("time(2)", ("-01:02:03.5", "800:00:00"), ("-01:02:03.50", "1")),
    ("decimal(45,2)", ("12.30", "-1"), ("12.30", "12.3")),
    ("decimal(45,2) zerofill", ("12.30",), ("12.30",)),
)
TIMES: tuple[Case, ...] = (
    ("date", ("2024-03-01", "2023-12-31"), ("2024-03-01",)),
    ("datetime(6)", ("2024-03-01 00:00:00.000001", "2024-03-01"), ("2024-03-01T00:00:00.000001",)),
    ("timestamp", ("2024-03-01", "2023-12-31 23:59:59"), ("2024-03-01T01:00:00+01:00", "1960-01-01", "3000-01-01")),
)
CASTS: tuple[Case, ...] = (
    ("int(5) zerofill", (42, 7), ("42", "00042")),
    ("bit(1)", (1, 0), ("1", "0")),
    ("year", (0, 2024), ("0", "2024")),
    ("decimal(9,2) zerofill", ("1.50",), ("1.50",)),
    ("date", ("2024-03-01",), ("2024-03-01",)),
)

EACH_RUN = ("year", "float", "decimal(38,30)", "timestamp", "int(5) zerofill", "bit(1)")


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedMariaDB]:
    with embedded(binlog_row_metadata="FULL") as server:
        yield server


def conditions(literals: tuple[Scalar, ...]) -> Iterator[Condition]:
    for literal in literals:
        for op in Comparison:
            if op not in (Comparison.IN, Comparison.NOT_IN, Comparison.IS_NULL, Comparison.IS_NOT_NULL):
                yield Condition("v", op, literal)
    yield Condition("v", Comparison.IN, literals)
    yield Condition("v", Comparison.NOT_IN, literals[:1])
    yield Condition("v", Comparison.IS_NULL, None)
    yield Condition("v", Comparison.IS_NOT_NULL, None)


def assert_alike(server: EmbeddedMariaDB, case: Case, cast: bool = False) -> set[str]:
    """Returns the conditions that select some rows and not all."""
    native, values, literals = case
    shop = Shop(server)
    shop.sql("SET time_zone = '+00:00'", f"CREATE TABLE k (id int PRIMARY KEY, v {native} NULL)")
    shop.window()
    with shop.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO k VALUES (%s, %s)", list(enumerate(values)))
    start, telling, columns = shop.position, set(), Columns(cast={"v": "text"} if cast else {})
    for condition in conditions(literals):
        shop.position = start
        task = shop.task("k", where=[condition], columns=columns)
        streamed: Rows = {}
        fold(streamed, records(shop.window(task)))
        _, copied = shop.copied(task)
        assert sorted(copied) == sorted(streamed), condition
        if 0 < len(copied) < len(values):
            telling.add(json.dumps([condition.op.value, condition.value]))
    return telling


def given(cases: Iterable[Case]) -> list[Any]:
    """Each run has the kinds that the server and Python compare differently."""
    marks = {case: () if case[0] in EACH_RUN else (pytest.mark.nightly,) for case in cases}
    return [pytest.param(case, marks=some, id=case[0]) for case, some in marks.items()]


@pytest.mark.parametrize("case", given([*NUMBERS, *TEXTS, *TIMES]))
def test_the_copy_and_the_binlog_compare_alike(server: EmbeddedMariaDB, case: Case) -> None:
    telling = assert_alike(server, case)
    assert telling or len(case[1]) == 1


@pytest.mark.parametrize("case", given(CASTS))
def test_a_cast_column_is_compared_as_its_text_in_the_copy(server: EmbeddedMariaDB, case: Case) -> None:
    assert_alike(server, case, cast=True)


def test_a_float_is_compared_as_the_number_that_the_copy_shows(server: EmbeddedMariaDB) -> None:
    assert '["=", 0.1]' in assert_alike(server, ("float", (0.1, 0.2), (0.1,)))
