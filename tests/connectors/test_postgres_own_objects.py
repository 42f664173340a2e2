"""What a replicator creates at a PostgreSQL source, and how it is removed or gets another name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from airflow_cdc_provider.connectors.source_features import SourceObject
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.spec.definition import Source
from tests.connectors.conftest import Database

A, B, C = "public.a", "public.b", "public.c"


@pytest.fixture
def shop(database: Database) -> Database:
    database.sql(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in ("a", "b", "c")))
    database.publish("a")
    return database


def other(shop: Database, name: str) -> PostgresSource:
    return PostgresSource(Source("postgres", "db", options={"publication": "cdc"}), shop.source.client.info, name)


def members(shop: Database) -> set[str]:
    rows = shop.connection.execute("SELECT tablename FROM pg_publication_tables WHERE pubname = 'cdc'").fetchall()
    return {name for (name,) in rows}


def names(source: PostgresSource) -> set[str]:
    return {one.name for one in source.objects()}


def test_only_tables_that_the_replicator_added_leave_the_publication(shop: Database) -> None:
    shop.sql("COMMENT ON PUBLICATION cdc IS 'of the shop'")
    shop.source.open_stream([A, B, C])
    assert shop.source.objects() == [
        SourceObject("replication slot", f"cdc_{shop.replicator}"),
        SourceObject("table in publication cdc", B),
        SourceObject("table in publication cdc", C),
    ]
    shop.sql("ALTER PUBLICATION cdc DROP TABLE c", "ALTER PUBLICATION cdc ADD TABLE c")
    assert B in names(shop.source) and C not in names(shop.source), "its owner has added it again"
    for _ in range(2):
        shop.source.drop_stream()
        shop.source.remove_objects([])
    assert (members(shop), shop.source.objects()) == ({"a", "c"}, [])
    assert shop.ask("SELECT obj_description(oid, 'pg_publication') FROM pg_publication") == "of the shop"


def test_a_publication_that_another_replicator_reads_keeps_its_tables(shop: Database) -> None:
    shop.source.open_stream([A, B])
    same = Source("postgres", "db", options={"publication": "cdc"})
    shop.source.remove_objects([replace(same, options={"publication": "another"}), same])
    assert members(shop) == {"a", "b"}
    shop.source.remove_objects([])
    assert members(shop) == {"a"}


def test_replicators_that_add_tables_at_once_are_all_recorded(shop: Database) -> None:
    tables = [f"t{number}" for number in range(12)]
    shop.sql(*(f"CREATE TABLE {table} (id int PRIMARY KEY)" for table in tables))

    def add(number: int) -> None:
        task = shop.task(f"public.t{number}")
        with other(shop, f"r{number % 3}").copy(task, 1, {}, 1):
            pass

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(12)))
    for name in range(3):
        assert names(other(shop, f"r{name}")) == {f"public.t{number}" for number in range(12) if number % 3 == name}
        other(shop, f"r{name}").remove_objects([])
    assert members(shop) == {"a"}


def test_a_line_that_was_changed_by_hand_removes_nothing(shop: Database) -> None:
    shop.source.open_stream([A, B])
    shop.sql("COMMENT ON PUBLICATION cdc IS 'airflow-cdc-provider: {broken'")
    shop.source.remove_objects([])
    assert members(shop) == {"a", "b"}


def test_a_renamed_replicator_has_the_stream_at_the_same_position(shop: Database) -> None:
    start = shop.source.open_stream([A, B])
    shop.sql("INSERT INTO a VALUES (1)")
    renamed = other(shop, "renamed")
    for _ in range(2):
        assert renamed.take_objects(shop.replicator)
    shop.source.drop_stream()
    assert renamed.take_objects(shop.replicator), "the old slot is gone already"
    try:
        assert names(renamed) == {"cdc_renamed", B}
        assert renamed.open_stream([A]) == start
        assert renamed.status(start, [A]).has_changes
        assert shop.source.objects() == []
    finally:
        renamed.drop_stream()


def test_a_slot_with_a_name_of_its_own_stays_the_same(shop: Database) -> None:
    options = {"publication": "cdc", "slot": "own_slot"}
    info = shop.source.client.info
    former = PostgresSource(Source("postgres", "db", options=options), info, "former")
    renamed = PostgresSource(Source("postgres", "db", options=options), info, "renamed")
    former.open_stream([A])
    assert not renamed.take_objects("former")
    assert names(renamed) == {"own_slot"}
    renamed.drop_stream()
