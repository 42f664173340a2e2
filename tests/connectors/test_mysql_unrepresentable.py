"""Dates of MySQL and MariaDB that do not exist are never replaced by another value, and in the key never lost."""

from __future__ import annotations

import json

import pytest

from airflow_cdc_provider.core.errors import BadRecordFound
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Rows, Shop, fold, records

NO_DATES = [
    ("date", "0000-00-00"),
    ("date", "2024-02-31"),
    ("datetime(3)", "0000-00-00 00:00:00.000"),
    ("datetime", "2024-00-10 11:12:13"),
    ("timestamp(6)", "0000-00-00 00:00:00.000000"),
]
WITHIN = {
    "date": "2024-02-29",
    "datetime(3)": "2024-02-29 12:34:56.120",
    "datetime": "2024-02-29 12:34:56",
    "timestamp(6)": "2024-02-29 12:34:56.000001",
}
ANY_DATE = "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


def filled(mariadb: EmbeddedMariaDB, native: str, value: str, key: str) -> Shop:
    shop = Shop(mariadb)
    shop.sql(ANY_DATE, f"CREATE TABLE odd (id int NOT NULL, v {native} NOT NULL, PRIMARY KEY ({key}))")
    shop.window(shop.task("odd"))
    shop.sql(f"INSERT INTO odd VALUES (0, '{value}'), (1, '{WITHIN[native]}')")
    return shop


@pytest.mark.parametrize(("native", "value"), NO_DATES)
@pytest.mark.parametrize("key", ["id", "id, v"])
def test_by_default_an_invalid_date_is_unreadable_and_in_the_key_it_stops_the_table(
    mariadb: EmbeddedMariaDB, native: str, value: str, key: str
) -> None:
    shop = filled(mariadb, native, value, key)
    task = shop.task("odd")
    bad, good = records(shop.window(task))
    why = undecoded(bad)
    assert why is not None and why.columns == ("v",) and why.known == {"id": 0} and good.op == "insert"
    assert bad.key == ("[0]" if key == "id" else None)
    assert ("in the key" in why.reason) == (key != "id") and "cast: {v: text}" in why.reason
    with pytest.raises(BadRecordFound, match=r"CPY009.*v: an invalid date, such as a zero date"):
        shop.copied(task)


def test_a_later_change_of_a_row_whose_key_is_an_invalid_date_says_so(mariadb: EmbeddedMariaDB) -> None:
    shop = filled(mariadb, "date", "2024-02-31", "id, v")
    shop.sql("UPDATE odd SET v = '2024-02-29' WHERE id = 0")
    *_, update = records(shop.window(shop.task("odd")))
    why = undecoded(update)
    assert why is not None and "in the key" in why.reason


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_later_change_of_its_row_is_readable_unless_the_table_has_no_key(mariadb: EmbeddedMariaDB, key: str) -> None:
    shop = Shop(mariadb)
    shop.sql(ANY_DATE, f"CREATE TABLE odd (id int NOT NULL {key}, w int, v date)")
    shop.window(shop.task("odd"))
    shop.sql("INSERT INTO odd VALUES (0, 1, '2024-02-31'), (1, 1, '2024-02-31'), (2, 1, '2024-02-31')")
    shop.sql("UPDATE odd SET v = '2024-02-29' WHERE id = 0", "DELETE FROM odd WHERE id = 1")
    shop.sql("UPDATE odd SET w = 2 WHERE id = 2")
    *inserts, update, delete, still_bad = records(shop.window(shop.task("odd")))
    assert all(undecoded(one) for one in (*inserts, still_bad))
    assert (undecoded(update) is None, undecoded(delete) is None) == (bool(key), bool(key))
    if key:
        assert (update.op, json.loads(update.after or "")) == ("update", {"id": 0, "w": 1, "v": "2024-02-29"})
        assert (delete.op, json.loads(delete.before or "")) == ("delete", {"id": 1, "w": 1})


@pytest.mark.parametrize(("native", "value"), NO_DATES)
def test_set_null_writes_null_and_the_text_to_another_column(mariadb: EmbeddedMariaDB, native: str, value: str) -> None:
    shop = filled(mariadb, native, value, "id")
    task = shop.task("odd", on_unrepresentable=OnUnrepresentable.SET_NULL)
    streamed: Rows = {}
    fold(streamed, records(shop.window(task)))
    _, copied = shop.copied(task)
    assert copied == streamed
    assert copied["[0]"] == {"id": 0, "v": None, "_cdc_text_v": value}
    assert copied["[1]"]["v"] and copied["[1]"]["_cdc_text_v"] is None


@pytest.mark.parametrize(("native", "value"), NO_DATES)
@pytest.mark.parametrize("key", [pytest.param("id", marks=pytest.mark.nightly), "id, v"])
def test_a_cast_column_contains_the_texts_of_the_server(
    mariadb: EmbeddedMariaDB, native: str, value: str, key: str
) -> None:
    shop = filled(mariadb, native, value, key)
    task = shop.task("odd", columns=Columns(cast={"v": "text"}))
    streamed: Rows = {}
    fold(streamed, records(shop.window(task)))
    _, copied = shop.copied(task)
    assert copied == streamed
    assert [row["v"] for row in copied.values()] == [value, WITHIN[native]]


def test_a_negative_zero_in_the_key_is_zero_as_in_the_source(mariadb: EmbeddedMariaDB) -> None:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE f (k double PRIMARY KEY, v int)")
    task = shop.task("f")
    shop.window(task)
    shop.sql("INSERT INTO f VALUES (-0.0e0, 1)", "UPDATE f SET k = 0, v = 2", "INSERT INTO f VALUES (1.5, 3)")
    streamed: Rows = {}
    fold(streamed, records(shop.window(task)))
    _, copied = shop.copied(task)
    assert copied == streamed and set(copied) == {"[0.0]", "[1.5]"}


def test_spellings_that_the_server_considers_one_key_are_changes_of_one_row(mariadb: EmbeddedMariaDB) -> None:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE c (k varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v int)")
    task = shop.task("c")
    shop.window(task)
    shop.sql(
        "INSERT INTO c VALUES ('a', 1), ('b ', 2), ('c', 3), ('d', 4)",
        "UPDATE c SET k = 'A' WHERE k = 'a'",
        "REPLACE INTO c VALUES ('B', 5)",
        "INSERT INTO c VALUES ('C ', 6) ON DUPLICATE KEY UPDATE k = 'C ', v = 6",
        "DELETE FROM c WHERE k = 'D'",
        "INSERT INTO c VALUES ('D', 7)",
    )
    streamed: Rows = {}
    fold(streamed, records(shop.window(task)))
    _, copied = shop.copied(task)
    assert copied == streamed and set(copied) == {'["A"]', '["B"]', '["C "]', '["D"]'}
