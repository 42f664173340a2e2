"""Random transactions in random windows: the changes of the connector, folded, equal the table."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Rows, Shop, fold, records
from tests.mariadb import embedded, mariadb_only
from tests.model.seeds import histories, only, replayed_by, seed

pytestmark = pytest.mark.server

SEED, HISTORIES = seed(), histories(1)
TRANSACTIONS = 40
TABLES = ("plain", "pair")
TABLES_SQL = (
    "CREATE TABLE plain (id int PRIMARY KEY, n bigint unsigned, word varchar(20), doc text, at timestamp(6) NULL)",
    "CREATE TABLE pair (a varchar(5) CHARACTER SET latin1, b smallint, n decimal(30,4), raw varbinary(9), "
    "kind enum('one','two'), PRIMARY KEY (b, a))",
    "CREATE TABLE other (id int PRIMARY KEY)",
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("FULL", marks=pytest.mark.nightly),
        "NOBLOB",
        "MINIMAL",
        pytest.param("compressed", marks=mariadb_only),
    ],
)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedMariaDB]:
    settings = {"binlog_row_image": request.param} if request.param != "compressed" else {}
    if request.param == "compressed":
        settings = {"log_bin_compress": "ON", "log_bin_compress_min_len": "10", "binlog_row_metadata": "NO_LOG"}
    with embedded(**settings) as server:
        yield server


def statement(draw: random.Random) -> str:
    word = draw.choice(["NULL", "''", "'a'", "'ü☃'", f"'{draw.randrange(1000)}'"])
    key, key2 = draw.randrange(12), draw.randrange(12)
    pair = f"'{draw.choice('aböz')}', {draw.randrange(5)}"
    number = draw.choice(["NULL", "0", "-1.5", "99999999999999999999999999.9999"])
    return draw.choices(
        [
            f"REPLACE INTO plain VALUES ({key}, {draw.randrange(1 << 64)}, {word}, {word}, '2026-01-02 03:04:05.6')",
            f"INSERT IGNORE INTO plain (id, word) VALUES ({key}, {word}), ({key2}, 'x'), ({key} + 20, NULL)",
            f"UPDATE IGNORE plain SET word = {word} WHERE id < {key}",
            f"UPDATE IGNORE plain SET n = n / 2, doc = {word} WHERE id = {key}",
            f"UPDATE IGNORE plain SET id = id + {draw.randrange(1, 9)} WHERE id > {key} ORDER BY id DESC",
            f"UPDATE IGNORE plain SET id = {key2} WHERE id = {key}",
            f"DELETE FROM plain WHERE id IN ({key}, {key2})",
            f"INSERT INTO pair (a, b, n) VALUES ({pair}, {number}) ON DUPLICATE KEY UPDATE n = {number}, kind = 'two'",
            f"UPDATE IGNORE pair SET raw = x'00ff', a = 'q' WHERE b = {draw.randrange(5)}",
            f"DELETE FROM pair WHERE b = {draw.randrange(5)}",
            f"INSERT IGNORE INTO other VALUES ({key})",
            f"TRUNCATE TABLE {draw.choice(TABLES)}",
            "FLUSH BINARY LOGS",
        ],
        [6, 6, 4, 4, 4, 4, 3, 6, 4, 2, 2, 1, 1],
    )[0]


def run_transaction(shop: Shop, draw: random.Random) -> None:
    """One transaction, or one statement outside of it; some are rolled back."""
    statements = [statement(draw) for _ in range(draw.randrange(1, 5))]
    if any(one.startswith(("TRUNCATE", "FLUSH")) for one in statements):
        shop.sql(*statements)
        return
    shop.sql("BEGIN", *statements, draw.choices(["COMMIT", "ROLLBACK"], [5, 1])[0])


def current_rows(shop: Shop, name: str) -> Rows:
    task = shop.task(name)
    return shop.copied(task, 1)[1]


@pytest.mark.parametrize("number", [one for one in range(HISTORIES) if only() in (None, one)])
def test_folded_windows_of_any_length_equal_the_table(server: EmbeddedMariaDB, number: int) -> None:
    print(replayed_by(SEED, HISTORIES, __file__))
    draw = random.Random(f"{SEED} {number}")
    shop = Shop(server)
    shop.sql(*TABLES_SQL)
    tasks = [shop.task(name) for name in TABLES]
    rows: dict[str, Rows] = {task.table: {} for task in tasks}
    floors = dict.fromkeys(rows, "")
    copied_at = draw.randrange(TRANSACTIONS)
    for moment in range(TRANSACTIONS):
        run_transaction(shop, draw)
        if moment == copied_at:
            for task in tasks:
                copy, rows[task.table] = shop.copied(task, 3)
                floors[task.table] = copy.floor
        if draw.random() < 0.2:
            changes = records(cut(shop, draw, tasks))
            apply(rows, changes, floors)
    apply(rows, records(shop.window(*tasks)), floors)
    for name in TABLES:
        assert rows[shop.table(name)] == current_rows(shop, name), replayed_by(SEED, HISTORIES, __file__)


def cut(shop: Shop, draw: random.Random, tasks: list[Any]) -> list[Any]:
    """A window that ends at any boundary; the next one repeats what follows it."""
    start = shop.position
    items = shop.window(*tasks)
    ends = [at for at, item in enumerate(items) if isinstance(item, Boundary)]
    if not ends:
        return items
    last = draw.choice(ends)
    end = items[last]
    assert isinstance(end, Boundary)
    shop.position = start
    again = shop.window(*tasks, limit=end.position)
    assert shop.position == end.position
    assert [one for one in again if isinstance(one, ChangeRecord)] == [
        one for one in items[: last + 1] if isinstance(one, ChangeRecord)
    ]
    return again


def apply(rows: dict[str, Rows], changes: list[ChangeRecord], floors: dict[str, str]) -> None:
    for table in rows:
        fold(rows[table], [one for one in changes if one.table == table], floors[table])


def test_a_window_has_the_expected_records(server: EmbeddedMariaDB) -> None:
    shop = Shop(server)
    shop.sql(*TABLES_SQL)
    shop.sql("INSERT INTO plain (id, word) VALUES (1, 'a'), (2, 'b')")
    changes = records(shop.window(shop.task("plain")))
    assert [(one.op, one.key, json.loads(one.after or "")["word"]) for one in changes] == [
        ("insert", "[1]", "a"),
        ("insert", "[2]", "b"),
    ]
    assert changes[0].order_key[:40] == changes[1].order_key[:40]
    assert {one.tx_id for one in changes} == {changes[0].tx_id} and [one.tx_seq for one in changes] == [1, 2]
