"""A text in a condition means nothing but itself, whatever it means in some language: stream and copy select its row
and no other. Values may be longer than a page of the server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors import conftest, mysql_database
from tests.connectors.conftest import Database
from tests.connectors.mysql_database import Shop
from tests.connectors.polled_database import Polling, images
from tests.hostile_texts import LONG, TEXTS
from tests.mariadb import embedded

pytestmark = pytest.mark.server

VALUES = (*TEXTS, *LONG)
OTHERS = ("other", None)
"""Of further rows."""
ONES = tuple(TEXTS[::12])
CONDITIONS = [
    Condition("v", Comparison.IN, TEXTS),
    Condition("v", Comparison.IN, LONG),
    Condition("v", Comparison.NOT_IN, TEXTS),
    *(Condition("v", Comparison.EQUAL, text) for text in (*ONES, *LONG)),
    *(Condition("v", Comparison.NOT_EQUAL, text) for text in (*ONES[::5], LONG[1])),
]


def selected(condition: Condition) -> set[int]:
    """Numbers of the rows."""
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    wanted = condition.op in (Comparison.IN, Comparison.EQUAL)
    rows = enumerate((*VALUES, *OTHERS))
    return {number for number, value in rows if value is not None and (value in values) is wanted}


def numbers(keys: Iterable[str | None]) -> set[int]:
    return {json.loads(key)[0] for key in keys if key}


@pytest.fixture(scope="module")
def database(server: Any) -> Iterator[tuple[Database, dict[str, str]]]:
    database = Database(server)
    database.sql("CREATE TABLE item (id int PRIMARY KEY, v text)", "ALTER TABLE item REPLICA IDENTITY FULL")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    with database.connect() as connection:
        rows = list(enumerate((*VALUES, *OTHERS)))
        connection.cursor().executemany("INSERT INTO item VALUES (%s, %s)", rows)
    yield database, dict(start)
    database.drop()


def test_postgres(database: tuple[Database, dict[str, str]]) -> None:
    shop, start = database
    for condition in CONDITIONS:
        task = shop.task("public.item", where=[condition])
        by_stream = numbers(record.key for record in conftest.records(shop.read(start, task)))
        with shop.source.copy(task, 1, {}, 1) as copy:
            copied = {row["id"] for row in shop.copied(copy)}
        assert by_stream == copied == selected(condition), condition


@pytest.fixture(scope="module")
def mariadb() -> Iterator[EmbeddedMariaDB]:
    with embedded(binlog_row_metadata="FULL") as server:
        yield server


def test_mysql(mariadb: EmbeddedMariaDB) -> None:
    shop = Shop(mariadb)
    text = "mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
    shop.sql("SET sql_mode = ''", f"CREATE TABLE item (id int PRIMARY KEY, v {text})")
    shop.window()
    with shop.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO item VALUES (%s, %s)", list(enumerate((*VALUES, *OTHERS))))
    start = shop.position
    for condition in CONDITIONS:
        shop.position = start
        task = shop.task("item", where=[condition])
        by_stream = numbers(record.key for record in mysql_database.records(shop.window(task)))
        _, copied = shop.copied(task)
        assert by_stream == numbers(copied) == selected(condition), condition


def test_poll(database: tuple[Database, dict[str, str]]) -> None:
    shop, _ = database
    server = shop.server
    shop.sql(
        "CREATE TABLE polled AS SELECT *, now() - interval '1 minute' AS updated_at FROM item",
        "ALTER TABLE polled ADD PRIMARY KEY (id), ALTER updated_at SET NOT NULL",
        "CREATE INDEX ON polled (updated_at)",
    )
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, shop.name)
    polling = Polling("postgresql+psycopg", info, key_audit=86400, timestamp_latency=3600)
    polling.position = start = polling.source.open_stream(["public.polled"])
    for condition in CONDITIONS:
        polling.position, polling.rows = start, {}
        task = polling.task("public.polled", where=[condition])
        polled = {row["id"] for op, row in images(polling.window(task)) if op != "delete"}
        polling.copy(task)
        assert polled == numbers(polling.rows["public.polled"]) == selected(condition), condition
