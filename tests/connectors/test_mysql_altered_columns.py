"""What an ALTER TABLE does to columns that a window tells, or that the target has already."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.tables import TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes

pytestmark = pytest.mark.server


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.position = shop.source.open_stream([])
    return shop


@pytest.mark.parametrize("action", ["MODIFY word varchar(1)", "MODIFY at datetime", "MODIFY mood enum('new', 'done')"])
def test_a_window_that_ends_before_an_alter_does_not_hide_it_from_the_next(shop: Shop, action: str) -> None:
    """The catalogue is that of behind the ALTER already, and the target takes over the types that a window tells."""
    shop.sql(
        "CREATE TABLE c (id int PRIMARY KEY, word varchar(20), at datetime(6), mood enum('new', 'open', 'done'))",
        "INSERT INTO c VALUES (1, 'a', '2026-01-02 03:04:05.5', 'new')",
    )
    shop.window()
    held = shop.task("c").schema
    shop.sql("UPDATE c SET word = 'b'")
    limit = shop.news("c").limit
    shop.sql(f"ALTER TABLE c {action}")
    first = shop.window(shop.task("c", held), limit=limit)
    told = next((item for item in reversed(first) if isinstance(item, TableSchema)), held)
    assert holes(first) or holes(shop.window(shop.task("c", told)))


@pytest.mark.parametrize("column", ["number", "later"])
def test_a_column_that_is_dropped_and_added_again_is_a_hole_also_with_rows_between(shop: Shop, column: str) -> None:
    """The target holds a dropped column with its values, whether it had it before the window or took it from there."""
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word varchar(9), number int)", "INSERT INTO c VALUES (1, 'a', 7)")
    shop.window()
    held = shop.task("c").schema
    shop.sql("ALTER TABLE c ADD later int", "INSERT INTO c VALUES (2, 'b', 8, 9)")
    assert not holes(shop.window(shop.task("c", held)))
    shop.sql("ALTER TABLE c ADD last int", "INSERT INTO c VALUES (3, 'b', 8, 9, 10)")
    shop.sql(f"ALTER TABLE c DROP {column}", "UPDATE c SET word = 'c' WHERE id = 1", f"ALTER TABLE c ADD {column} int")
    (table, why), *_ = holes(shop.window(shop.task("c", held)))
    assert (table, why) == (shop.table("c"), f"column {column} was dropped and another one was added under its name")
