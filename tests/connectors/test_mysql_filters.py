"""Row filters over dates that do not exist in the calendar: a copy and the binlog select the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, OnUnrepresentable, Scalar
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Rows, Shop, fold, records
from tests.mariadb import embedded

pytestmark = pytest.mark.server

VALUES = {
    "date": ("0000-00-00", "2024-00-10", "2024-02-31", "2023-12-31", "2024-03-01", None),
    "datetime(3)": ("0000-00-00 00:00:00", "2024-00-10 11:12:13.5", "2023-12-31 23:59:59.999", "2024-03-01", None),
    "timestamp(6)": ("0000-00-00 00:00:00", "2023-12-31 23:59:59.999", "2024-03-01 00:00:00", None),
}
CONDITIONS: list[tuple[Comparison, Scalar | tuple[Scalar, ...] | None]] = [
    (Comparison.LESS, "2024-01-01"),
    (Comparison.LESS_OR_EQUAL, "2024-03-01"),
    (Comparison.GREATER, "2024-01-01"),
    (Comparison.GREATER_OR_EQUAL, "0001-01-01"),
    (Comparison.EQUAL, "2024-03-01"),
    (Comparison.NOT_EQUAL, "2024-03-01"),
    (Comparison.IN, ("2024-03-01", "2023-12-31")),
    (Comparison.NOT_IN, ("2024-03-01", "2023-12-31")),
    (Comparison.IS_NULL, None),
    (Comparison.IS_NOT_NULL, None),
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedMariaDB]:
    with embedded(binlog_row_metadata="FULL") as server:
        yield server


def filled(server: EmbeddedMariaDB, native: str, nullable: bool) -> Shop:
    shop = Shop(server)
    shop.sql("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
    shop.sql(f"CREATE TABLE odd (id int PRIMARY KEY, v {native} {'NULL' if nullable else 'NOT NULL'})")
    shop.window()
    values = [value for value in VALUES[native] if nullable or value is not None]
    with shop.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO odd VALUES (%s, %s)", list(enumerate(values)))
    return shop


@pytest.mark.parametrize(
    ("native", "nullable"),
    [
        pytest.param("date", True, marks=pytest.mark.nightly),
        ("datetime(3)", False),
        pytest.param("timestamp(6)", True, marks=pytest.mark.nightly),
    ],
)
def test_the_copy_and_the_binlog_select_the_same_rows(server: EmbeddedMariaDB, native: str, nullable: bool) -> None:
    shop = filled(server, native, nullable)
    start = shop.position
    for op, value in CONDITIONS:
        shop.position = start
        where = [Condition("v", op, value)]
        task = shop.task("odd", where=where, on_unrepresentable=OnUnrepresentable.SET_NULL)
        streamed: Rows = {}
        fold(streamed, records(shop.window(task)))
        _, copied = shop.copied(task)
        assert copied == streamed, (op, value)


def test_dates_that_do_not_exist_are_ordered_as_the_server_orders_them(server: EmbeddedMariaDB) -> None:
    shop = filled(server, "date", True)
    task = shop.task(
        "odd",
        where=[Condition("v", Comparison.GREATER_OR_EQUAL, "2024-01-01")],
        on_unrepresentable=OnUnrepresentable.SET_NULL,
    )
    _, copied = shop.copied(task)
    assert sorted(copied) == ["[2]", "[4]"], "2024-02-31 and 2024-03-01"


@pytest.mark.parametrize("native", VALUES)
def test_a_cast_column_is_compared_as_text(server: EmbeddedMariaDB, native: str) -> None:
    shop = filled(server, native, True)
    first = VALUES[native][0] or ""
    fraction = {"datetime(3)": ".000", "timestamp(6)": ".000000"}.get(native, "")
    where = [Condition("v", Comparison.EQUAL, first + fraction)]
    task = shop.task("odd", where=where, columns=Columns(cast={"v": "text"}))
    streamed: Rows = {}
    fold(streamed, records(shop.window(task)))
    _, copied = shop.copied(task)
    assert copied == streamed and set(copied) == {"[0]"}


@pytest.mark.parametrize("value", ["0000-00-00", "2024-00-10", "no date"])
def test_a_filter_with_an_invalid_date_is_refused_by_check_and_by_the_copy(server: EmbeddedMariaDB, value: str) -> None:
    shop = filled(server, "date", True)
    task = shop.task("odd", where=[Condition("v", Comparison.NOT_EQUAL, value)])
    (problem,) = (one for one in shop.source.check([task]) if one.code == "SRC018")
    with pytest.raises(CheckFailed, match="SRC018"):
        shop.copied(task)
    assert "0001-01-01" in problem.do
