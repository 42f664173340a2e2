"""Polled tables of an SQL database that is a file and needs no server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.key_ranges import ranges
from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, SourceUnavailable, SourceUnreachable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, OnDelete
from airflow_cdc_provider.core.table.schema import Kind
from tests.connectors.polled_database import Polling, images

ORDERS = """
CREATE TABLE orders (region TEXT NOT NULL, id INTEGER NOT NULL, note TEXT, weight DOUBLE, photo BLOB, paid BOOLEAN,
                     due DATE, updated_at DATETIME, PRIMARY KEY (region, id))
"""


class Shop:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.info = ConnectionInfo("db", schema=str(path))

    def sql(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    def order(self, region: str, number: int, ago_s: float | None, note: str = "") -> None:
        stamp = None if ago_s is None else ago(ago_s)
        values = (region, number, note, 1.5, b"\0\xff", True, "2026-02-01", stamp)
        self.sql("INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *values)

    def polling(self, **options: Any) -> Polling:
        return Polling("sqlite", self.info, **options)


def ago(seconds: float) -> str:
    return f"{datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S.%f}"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path / "shop.db")
    shop.sql(ORDERS)
    yield shop
    shop.connection.close()


def test_changed_rows_are_read_in_pages_by_a_key_of_several_columns(shop: Shop) -> None:
    polling = shop.polling(page_rows=2)
    polling.position = polling.source.open_stream(["main.orders"])
    task = polling.task("main.orders")
    stamp = ago(30)
    for region in ("south", "north"):
        for number in (3, 1, 20):
            shop.order(region, number, 30, "it's")
    shop.sql("UPDATE orders SET updated_at = ?", stamp)
    items = polling.window(task)
    keys = [item.key for item in items if isinstance(item, ChangeRecord)]
    assert keys == [f'["{region}",{number}]' for region in ("north", "south") for number in (1, 3, 20)]
    _, row = images(items)[0]
    assert row | {"updated_at": ""} == {
        "region": "north", "id": 1, "note": "it's", "weight": 1.5, "photo": "AP8=", "paid": True,
        "due": "2026-02-01", "updated_at": "",
    }  # fmt: skip
    assert polling.window(task), "it is in the overlap, and is read again"


def test_a_row_filter_makes_deletes_of_rows_that_it_no_longer_selects(shop: Shop) -> None:
    polling = shop.polling()
    polling.position = polling.source.open_stream(["main.orders"])
    task = polling.task("main.orders", where=[Condition("region", Comparison.IN, ("north",))])
    shop.order("north", 1, 30)
    shop.order("south", 1, 30)
    assert [(op, row if op == "delete" else row["id"]) for op, row in images(polling.window(task))] == [
        ("upsert", 1),
        ("delete", ["south", 1]),
    ]
    polling.copy(task)
    assert list(polling.rows["main.orders"]) == ['["north", 1]']


def test_excluded_columns_are_neither_read_nor_required(shop: Shop) -> None:
    polling = shop.polling()
    polling.position = polling.source.open_stream(["main.orders"])
    task = polling.task("main.orders", columns=Columns(exclude=("updated_at", "photo", "note")))
    shop.order("north", 1, 30)
    ((_, row),) = images(polling.window(task))
    assert row.keys() == {"region", "id", "weight", "paid", "due"}
    polling.copy(task)
    assert polling.rows["main.orders"]['["north", 1]'].keys() == row.keys()


def test_a_copy_and_an_interval_have_the_same_rows(shop: Shop) -> None:
    polling = shop.polling()
    polling.position = polling.source.open_stream(["main.orders"])
    task = polling.task("main.orders")
    shop.order("north", 1, 30)
    shop.order("north", 2, None)
    copy = polling.copy(task)
    items = polling.window(task)
    assert len(images(items)) == 2, "rows without timestamp are read in every interval"
    records = [item for item in items if isinstance(item, ChangeRecord)]
    assert all(record.order_key > copy.floor for record in records)
    assert len(polling.rows["main.orders"]) == 2


def test_most_tables_use_one_timestamp_column_and_some_another(shop: Shop) -> None:
    shop.sql("CREATE TABLE visits (id INTEGER PRIMARY KEY NOT NULL, seen TIMESTAMP NOT NULL)")
    polling = shop.polling(timestamp_columns={"main.visits": "seen"})
    polling.position = polling.source.open_stream(["main.orders", "main.visits"])
    shop.sql("INSERT INTO visits VALUES (7, ?)", ago(30))
    items = polling.window(polling.task("main.orders"), polling.task("main.visits"))
    assert [(item.table, item.key) for item in items if isinstance(item, ChangeRecord)] == [("main.visits", "[7]")]


def test_check_reports_every_problem_with_its_remedy(shop: Shop) -> None:
    shop.sql("CREATE TABLE plain (id INTEGER PRIMARY KEY NOT NULL, updated_at DATE NOT NULL)")
    shop.sql("CREATE TABLE heap (id INTEGER, updated_at DATETIME NOT NULL)")
    shop.sql("CREATE INDEX by_time ON heap (updated_at)")
    polling = shop.polling(timestamp_columns={"main.nothing": "x"}, key_audit=86400)
    tables = [polling.task("main.orders"), polling.task("main.plain"), polling.task("main.heap")]
    found = [(one.code, one.where) for one in polling.source.check(tables)]
    assert found == [
        ("SRC062", "main.nothing"),
        ("SRC064", "main.orders.updated_at"),
        ("SRC062", "main.plain.updated_at"),
        ("SRC063", "main.heap"),
    ]
    assert all(one.do for one in polling.source.check(tables))
    unaudited = shop.polling().source.check([polling.task("main.orders")])
    assert [one.code for one in unaudited] == ["SRC064", "SRC065"]
    polling.position = polling.source.open_stream(["main.heap"])
    with pytest.raises(CheckFailed, match="SRC063"), polling.source.copy(tables[2], 1, polling.position, 1):
        pass


def test_ignored_deletes_need_no_audit(shop: Shop) -> None:
    polling = shop.polling()
    task = polling.task("main.orders")
    kept = replace(task, rule=replace(task.rule, on_delete=OnDelete.IGNORE))
    assert "SRC065" not in [one.code for one in polling.source.check([kept])]


def test_the_offset_of_timestamps_without_zone_is_subtracted(shop: Shop) -> None:
    polling = shop.polling(time_zone="+02:00")
    polling.position = polling.source.open_stream(["main.orders"])
    shop.order("north", 1, 30 - 7200)
    items = polling.window(polling.task("main.orders"))
    (record,) = [item for item in items if isinstance(item, ChangeRecord)]
    assert record.commit_ts is not None
    assert 0 < (datetime.now(UTC) - record.commit_ts).total_seconds() < 1800
    options = JdbcPollOptions(driver="x", timestamp_column="y", time_zone="-03:30")
    assert options.offset == -timedelta(hours=3, minutes=30)


def identity(**fields: Any) -> dict[str, str]:
    info = ConnectionInfo(**{"host": "db.local", "login": "cdc", "password": "geheim", "schema": "shop", **fields})
    return Database(info, JdbcPollOptions(driver="postgresql+psycopg", timestamp_column="t")).identity()


@pytest.mark.parametrize("other", [{"host": "db2.local"}, {"port": 5433}, {"schema": "shop2"}])
def test_another_host_or_database_is_another_source(other: dict[str, Any]) -> None:
    assert identity() != identity(**other)


@pytest.mark.parametrize(
    "same", [{"host": "DB.local"}, {"port": 5432}, {"login": "ann", "password": "x"}, {"extra": {"sslmode": "require"}}]
)
def test_the_same_database_under_another_address_is_the_same_source(same: dict[str, Any]) -> None:
    assert identity() == identity(**same)
    assert "geheim" not in str(identity())


def test_a_missing_driver_is_reported(shop: Shop) -> None:
    with pytest.raises(NotInstalled, match="nosuch"):
        Polling("nosuch+driver", shop.info).source.identity()


def test_types_of_the_database_become_logical_types(shop: Shop) -> None:
    task = shop.polling().task("main.orders")
    kinds = {column.name: column.type.kind for column in task.schema.columns}
    assert kinds["photo"] is Kind.BYTES and kinds["updated_at"] is Kind.TIMESTAMP and kinds["due"] is Kind.DATE
    assert task.schema.key == ("region", "id")


def test_a_copy_is_split_by_whole_numbers_and_open_at_both_ends() -> None:
    assert ranges(1, 101, 4) == [(None, 26), (26, 51), (51, 76), (76, None)]
    assert ranges("a", "z", 4) == ranges(1, 2, 4) == ranges(None, None, 4) == [(None, None)]


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("with_names", [True, False])
def test_a_key_that_changes_within_an_interval_loses_no_row(shop: Shop, stamped: bool, with_names: bool) -> None:
    """The interval continues with the timestamp of the last row: rows of this time are read again. An older position
    has no names of its key."""
    polling = shop.polling(page_rows=100)
    polling.position = polling.source.open_stream(["main.orders"])
    for number in range(250):
        shop.order("north", number, 30 if stamped else None)
    shop.sql("UPDATE orders SET updated_at = ? WHERE updated_at IS NOT NULL", ago(30))
    task = polling.task("main.orders")
    status = polling.source.status(polling.position, ["main.orders"])
    (split,) = polling.source.splits(polling.position, status.limit)
    seen = set[str | None]()
    for item in polling.source.read(split, [task], 1):
        seen |= {item.key} if isinstance(item, ChangeRecord) else set()
        if isinstance(item, Boundary):
            polling.position = {**polling.position, **item.position}
            break
    assert len(seen) == 100
    if not with_names:
        text = json.loads(polling.position["main.orders"])
        del text["key"]
        polling.position = {"main.orders": json.dumps(text)}
    shop.sql("CREATE TABLE copied AS SELECT * FROM orders")
    shop.sql("DROP TABLE orders")
    shop.sql(ORDERS.replace("(region, id)", "(id)").replace("note TEXT", "comment TEXT"))
    shop.sql("INSERT INTO orders SELECT * FROM copied")
    task = polling.task("main.orders")
    items = polling.window(task)
    assert {row["id"] for op, row in images(items) if op == "upsert"} >= {*range(100, 250)}
    assert not json.loads(polling.position["main.orders"]).keys() & {"after", "key"}


def test_a_table_that_is_gone_is_an_error_of_this_table_and_a_lost_connection_one_of_all(shop: Shop) -> None:
    shop.sql("CREATE TABLE gone (id INTEGER PRIMARY KEY NOT NULL, updated_at TIMESTAMP NOT NULL)")
    polling = shop.polling()
    tables = ["main.gone", "main.orders"]
    polling.position = polling.source.open_stream(tables)
    task = polling.task("main.gone")
    shop.sql("DROP TABLE gone")
    assert [(one.code, one.table) for one in polling.source.check([task])] == [("SRC042", "main.gone")]
    status = polling.source.status(polling.position, tables)
    assert status.has_changes and status.limit.keys() == {"main.gone"}, "its reader reports the problem"
    (split,) = polling.source.splits(polling.position, status.limit)
    for source in (polling.source, shop.polling().source):
        with pytest.raises(SourceUnavailable) as failure:
            list(source.read(split, [task], 1))
        assert not isinstance(failure.value, SourceUnreachable)
    polling = Polling("sqlite", replace(shop.info, schema=f"{shop.info.schema}/nothing"))
    with pytest.raises(SourceUnreachable):
        polling.source.status({"main.orders": split.lo["main.gone"]}, ["main.orders"])


def test_an_error_while_rows_are_fetched_is_none_of_the_connection(shop: Shop) -> None:
    failing = "SELECT 1 UNION ALL SELECT abs(-9223372036854775808)"
    with pytest.raises(SourceUnavailable) as failure, shop.polling().source.database.session() as connection:
        connection.exec_driver_sql(failing).fetchall()
    assert not isinstance(failure.value, SourceUnreachable)
