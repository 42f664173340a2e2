"""Windows of a real slot: what is read, in what order, and where windows may end."""

from __future__ import annotations

import json

import pytest

from airflow_cdc_provider.core.tables import TableSchema
from tests.connectors.conftest import Database, ends, records


@pytest.fixture
def shop(database: Database) -> Database:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2))")
    database.publish("item")
    return database


def test_changes_come_in_commit_order_with_their_images(shop: Database) -> None:
    start = shop.source.open_stream(["public.item"])
    shop.sql(
        "INSERT INTO item VALUES (1, 'a', 1.50)",
        "UPDATE item SET price = 2 WHERE id = 1",
        "DELETE FROM item WHERE id = 1",
    )
    items = shop.read(start, shop.task("public.item"))
    assert isinstance(items[0], TableSchema)
    insert, update, delete = records(items)
    assert (insert.op, insert.key_before, insert.key) == ("insert", None, "[1]")
    assert insert.after == '{"id":1,"name":"a","price":"1.50"}' and insert.after_complete
    assert (update.op, update.key_before, update.key) == ("update", "[1]", "[1]")
    assert update.after == '{"id":1,"name":"a","price":"2.00"}' and update.before is None
    assert (delete.op, delete.key_before, delete.key) == ("delete", "[1]", None)
    assert json.loads(delete.before or "") == {"id": 1} and not delete.before_complete
    assert insert.order_key < update.order_key < delete.order_key
    assert {len(record.order_key) for record in records(items)} == {50}
    assert len(ends(items)) == 3


def test_nothing_new_then_something_new(shop: Database) -> None:
    start = shop.source.open_stream(["public.item"])
    assert not shop.source.news(start, ["public.item"]).anything
    shop.sql("INSERT INTO item VALUES (1, 'a', 1)")
    news = shop.source.news(start, ["public.item"])
    assert news.anything
    items = shop.read(start, shop.task("public.item"), limit=news.limit)
    (end,) = ends(items)
    assert not shop.source.news(end, ["public.item"]).anything
    shop.source.acknowledge(end)
    assert not shop.source.news(end, ["public.item"]).anything


def test_a_copy_is_made_exactly_at_its_floor(shop: Database) -> None:
    start = shop.source.open_stream(["public.item"])
    shop.sql("INSERT INTO item SELECT n, 'x', n FROM generate_series(1, 1000) n")
    task = shop.task("public.item")
    with shop.source.copy(task, epoch=1, partitions=4) as copy:
        shop.sql("INSERT INTO item VALUES (2000, 'late', 1)")
        rows = []
        for predicate in copy.read.predicates:
            with shop.connect(autocommit=False) as connection:
                connection.execute(copy.read.session_init.encode())
                query = f"SELECT * FROM {copy.read.query} WHERE {predicate}"
                rows += connection.execute(query.encode()).fetchall()
    assert sorted(row[0] for row in rows) == list(range(1, 1001))
    after = [record for record in records(shop.read(start, task)) if record.order_key > copy.floor]
    assert [record.key for record in after] == ["[2000]"]
