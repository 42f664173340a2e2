"""Who is in the publication, and what is told where a table was not."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.postgres.positions import lsn_of, members_of
from airflow_cdc_provider.connectors.postgres.publication import memberships
from airflow_cdc_provider.core.errors import CheckFailed
from tests.connectors.conftest import Database

ITEM = "public.item"


@pytest.fixture
def shop(database: Database) -> Database:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2))")
    database.publish("item")
    return database


def test_a_publication_that_is_gone_stops_the_stream_before_anything_is_passed_over(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("DROP PUBLICATION cdc", "INSERT INTO item VALUES (1, 'x', 0)")
    with pytest.raises(CheckFailed, match=r"SRC004.*CREATE PUBLICATION"):
        shop.source.news(start, [ITEM])
    with pytest.raises(CheckFailed, match="SRC004"):
        shop.read(start, shop.task(ITEM))


def test_a_table_taken_out_of_the_publication_stops_the_stream(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    held = shop.task(ITEM).schema
    shop.sql("ALTER PUBLICATION cdc DROP TABLE item", "INSERT INTO item VALUES (1, 'x', 0)")
    with pytest.raises(CheckFailed, match=r"SRC008.*public\.item"):
        shop.read(start, shop.task(ITEM, held=held))


MEMBERSHIPS = {
    "of the table": ["ADD TABLE item", "DROP TABLE item"],
    "of its schema": ["ADD TABLES IN SCHEMA public", "DROP TABLES IN SCHEMA public"],
    "with a filter": ["SET TABLE item WHERE (id > 0)", "DROP TABLE item"],
}


@pytest.mark.parametrize(
    "way",
    ["of the table", *(pytest.param(way, marks=pytest.mark.since(15)) for way in ("of its schema", "with a filter"))],
)
def test_a_table_that_was_outside_the_publication_for_a_while_is_told_once(shop: Database, way: str) -> None:
    put, take = MEMBERSHIPS[way]
    shop.sql("ALTER PUBLICATION cdc DROP TABLE item", f"ALTER PUBLICATION cdc {put}")
    start = shop.source.open_stream([ITEM])
    assert shop.source.news(start, [ITEM]).bridge is None
    shop.sql(f"ALTER PUBLICATION cdc {take}", "INSERT INTO item VALUES (1, 'x', 0)")
    assert shop.source.news(start, [ITEM]).bridge is None, "it is outside: nothing can be put right yet"
    shop.sql(f"ALTER PUBLICATION cdc {put}")
    bridge = shop.source.news(start, [ITEM]).bridge
    assert bridge is not None and list(bridge.untold) == [ITEM]
    assert lsn_of(bridge.position) == lsn_of(start)
    assert shop.source.news(bridge.position, [ITEM]).bridge is None


def test_a_publication_made_anew_leaves_none_of_its_tables_out(shop: Database) -> None:
    shop.sql("DROP PUBLICATION cdc", "CREATE PUBLICATION cdc FOR ALL TABLES")
    start = shop.source.open_stream([ITEM])
    shop.sql("DROP PUBLICATION cdc", "CREATE PUBLICATION cdc FOR ALL TABLES")
    bridge = shop.source.news(start, [ITEM]).bridge
    assert bridge is not None and list(bridge.untold) == [ITEM]


def test_a_partition_is_in_the_publication_by_its_root(shop: Database) -> None:
    shop.sql(
        "CREATE TABLE day (d int PRIMARY KEY) PARTITION BY RANGE (d)",
        "CREATE TABLE day_1 PARTITION OF day FOR VALUES FROM (0) TO (9)",
        "ALTER PUBLICATION cdc ADD TABLE day",
    )
    with shop.connect() as connection:
        found = memberships(connection, "cdc", ["public.day", "public.day_1", ITEM, "public.nowhere"])
    assert found.keys() == {"public.day", "public.day_1", ITEM}
    assert found["public.day"] == found["public.day_1"] != found[ITEM]


def test_a_table_that_joins_is_noted_before_the_next_window(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("CREATE TABLE late (id int PRIMARY KEY)", "ALTER PUBLICATION cdc ADD TABLE late")
    bridge = shop.source.news(start, [ITEM, "public.late"]).bridge
    assert bridge is not None and not bridge.untold
    assert shop.source.news(bridge.position, [ITEM, "public.late"]).bridge is None


def test_the_memberships_stay_in_the_position_while_nothing_of_ours_happens(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    fill = "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 20000)"
    shop.sql("CREATE TABLE filler (t text)", fill)
    news = shop.source.news(start, [ITEM])
    assert news.idle is not None and members_of(news.idle) == members_of(start) != {}
