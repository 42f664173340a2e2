"""Membership in the publication, and what is reported about tables outside of it."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.sources.postgres.publication import memberships
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.table.identity import unlogged_changes
from tests.connectors.conftest import Database, records

ITEM, OTHER = "public.item", "public.other"


@pytest.fixture
def shop(database: Database) -> Database:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2))")
    database.publish("item")
    return database


def test_a_missing_publication_stops_the_stream_before_anything_is_skipped(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("DROP PUBLICATION cdc", "INSERT INTO item VALUES (1, 'x', 0)")
    with pytest.raises(CheckFailed, match=r"SRC004.*CREATE PUBLICATION"):
        shop.source.status(start, [ITEM])
    with pytest.raises(CheckFailed, match="SRC004"):
        shop.read(start, shop.task(ITEM))


def test_a_table_removed_from_the_publication_is_reported_and_others_are_read(shop: Database) -> None:
    shop.sql("CREATE TABLE other (id int PRIMARY KEY)", "ALTER PUBLICATION cdc ADD TABLE other")
    start = shop.source.open_stream([ITEM, OTHER])
    tasks = [shop.task(table, held=shop.task(table).schema) for table in (ITEM, OTHER)]
    shop.sql("ALTER PUBLICATION cdc DROP TABLE item", "INSERT INTO item VALUES (1, 'x', 0)")
    shop.sql("INSERT INTO other VALUES (2)")
    status = shop.source.status(start, [ITEM, OTHER])
    assert status.has_changes and status.outside.keys() == {ITEM}
    problem = status.outside[ITEM]
    assert problem.code == "SRC008" and problem.do.startswith('ALTER PUBLICATION "cdc" ADD TABLE "public"."item";')
    assert [record.table for record in records(shop.read(start, *tasks))] == [OTHER]


MEMBERSHIPS = {
    "of the table": ["ADD TABLE item", "DROP TABLE item"],
    "of its schema": ["ADD TABLES IN SCHEMA public", "DROP TABLES IN SCHEMA public"],
    "with a filter": ["SET TABLE item WHERE (id > 0)", "DROP TABLE item"],
}


@pytest.mark.parametrize(
    "way",
    ["of the table", *(pytest.param(way, marks=pytest.mark.since(15)) for way in ("of its schema", "with a filter"))],
)
def test_a_table_that_was_outside_the_publication_for_a_while_has_another_identity(shop: Database, way: str) -> None:
    put, take = MEMBERSHIPS[way]
    shop.sql("ALTER PUBLICATION cdc DROP TABLE item", f"ALTER PUBLICATION cdc {put}")
    shop.source.open_stream([ITEM])
    with shop.source.copy(shop.task(ITEM), 1, {}, 1) as copy:
        assert copy.identity is not None and copy.identity == shop.source.identities([ITEM])[ITEM]
    shop.sql(f"ALTER PUBLICATION cdc {take}", "INSERT INTO item VALUES (1, 'x', 0)")
    assert unlogged(shop, copy) and shop.source.identities([ITEM])[ITEM].membership == ""
    shop.sql(f"ALTER PUBLICATION cdc {put}")
    assert unlogged(shop, copy)
    with shop.source.copy(shop.task(ITEM), 1, {}, 1) as again:
        assert not unlogged(shop, again)


def unlogged(shop: Database, copy: Copy) -> tuple[str, ...]:
    assert copy.identity is not None
    return unlogged_changes(copy.identity, shop.source.identities([ITEM])[ITEM], copy.schema, copy.schema).rows


def test_a_recreated_publication_contains_all_of_its_tables(shop: Database) -> None:
    shop.sql("DROP PUBLICATION cdc", "CREATE PUBLICATION cdc FOR ALL TABLES")
    before = shop.source.identities([ITEM])[ITEM].membership
    shop.sql("DROP PUBLICATION cdc", "CREATE PUBLICATION cdc FOR ALL TABLES")
    assert "" != before != shop.source.identities([ITEM])[ITEM].membership


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
