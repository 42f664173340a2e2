"""Schemas and tables whose names have dots are kept apart: table ``b.c`` of ``a`` and table ``c`` of ``a.b``."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from tests.connectors.conftest import Database, records
from tests.connectors.polled_database import Polling

pytestmark = pytest.mark.server

ONE, TWO = NAMES = ('a."b.c"', '"a.b".c')
"""As in SQL."""


@pytest.fixture
def twins(database: Database) -> Database:
    database.sql("CREATE SCHEMA a", 'CREATE SCHEMA "a.b"')
    for name, word in zip(NAMES, ("one", "two"), strict=True):
        database.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, word text, at timestamptz DEFAULT '2026-01-01Z')",
            f"INSERT INTO {name} VALUES (1, '{word}')",
            f"COMMENT ON COLUMN {name}.word IS '{word}'",
        )
    database.publish(*NAMES)
    return database


def test_copies_and_changes_of_both_are_kept_apart(twins: Database) -> None:
    tasks = [twins.task(name) for name in NAMES]
    position = twins.source.open_stream(NAMES)
    for task, word in zip(tasks, ("one", "two"), strict=True):
        with twins.source.copy(task, 1, position, 2) as copy:
            assert [row["word"] for row in twins.copied(copy)] == [word]
    twins.sql(
        f"INSERT INTO {ONE} VALUES (2, 'first')",
        f"UPDATE {TWO} SET word = 'second'",
        f"TRUNCATE {ONE}",
        f"ALTER TABLE {TWO} ADD more int",
        f"INSERT INTO {TWO} VALUES (3, 'third')",
    )
    changes = records(twins.read(position, *(twins.task(name) for name in NAMES)))
    assert [(record.table, record.op) for record in changes] == [
        (ONE, "insert"),
        (TWO, "update"),
        (ONE, "truncate"),
        (TWO, "insert"),
    ]


def test_what_the_catalog_says_is_of_the_table_that_it_names(twins: Database) -> None:
    twins.sql('CREATE VIEW "a.b"."v.w" AS SELECT 1', f"ANALYZE {ONE}", f"ALTER PUBLICATION cdc DROP TABLE {TWO}")
    source = twins.source
    assert [schema.table for schema in source.tables()] == [ONE, TWO]
    assert source.comments(NAMES) == {ONE: {"word": "one"}, TWO: {"word": "two"}}
    assert {name: size.rows for name, size in source.sizes(NAMES).items()} == {ONE: 1, TWO: None}
    assert source.other_kinds().keys() == {'"a.b"."v.w"'}
    found = [problem.what for problem in source.check([twins.task(name) for name in NAMES])]
    assert found == [f"{TWO} is not in publication cdc"]
    identities = source.identities(NAMES)
    assert identities.keys() == set(NAMES) and identities[ONE].membership and not identities[TWO].membership


def test_a_renamed_table_is_found_and_a_text_without_quotes_is_no_table(twins: Database) -> None:
    identities = twins.source.identities(NAMES)
    assert not twins.source.is_dropped(ONE, None)
    assert twins.source.is_dropped("a.b.c", None)
    assert not twins.source.is_dropped("a.b.c", identities[ONE])
    assert twins.source.present_names({"a.b.c": identities[TWO]}) == {"a.b.c": TWO}
    twins.sql('ALTER TABLE a."b.c" SET SCHEMA "a.b"')
    assert twins.source.present_names(identities)[ONE] == '"a.b"."b.c"'


def test_a_part_of_a_dotted_table_names_it(twins: Database) -> None:
    twins.sql(
        'CREATE TABLE "a.b"."p.q" (id int PRIMARY KEY) PARTITION BY RANGE (id)',
        'CREATE TABLE "a.b"."p.1" PARTITION OF "a.b"."p.q" FOR VALUES FROM (0) TO (9)',
    )
    assert twins.source.other_kinds()['"a.b"."p.1"'].within == '"a.b"."p.q"'


def test_a_poll_keeps_them_apart(twins: Database) -> None:
    info = ConnectionInfo("db", twins.server.host, twins.server.port, "postgres", twins.server.password, twins.name)
    polling = Polling("postgresql", info, schemas=["a", "a.b"], timestamp_column="at")
    polled = polling.source
    assert [schema.table for schema in polled.tables()] == [ONE, TWO]
    identities = polled.identities(NAMES)
    assert identities[ONE].table != identities[TWO].table
    assert polled.sizes(NAMES).keys() == set(NAMES)
    assert polled.comments(NAMES) == {ONE: {"word": "one"}, TWO: {"word": "two"}}
    for name, word in zip(NAMES, ("one", "two"), strict=True):
        polling.position = polled.open_stream([name])
        polling.copy(polling.task(name))
        assert [row["word"] for row in polling.rows[name].values()] == [word]
    again = Polling("postgresql", info, schemas=["a", "a.b"], timestamp_column="at")
    again.position = polling.position
    again.copy(polling.task(TWO))
    assert [row["word"] for row in again.rows[TWO].values()] == ["two"]
