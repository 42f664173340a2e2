"""Positions of a stream that has no changes of our tables."""

from __future__ import annotations

from airflow_cdc_provider.connectors.source import SourceStatus
from tests.connectors.conftest import Database, records
from tests.waiting import until

ITEM = "public.item"


def test_an_idle_position_advances_only_by_a_long_way(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2))")
    database.publish("item")
    start = database.source.open_stream([ITEM])
    database.sql("CREATE TABLE noise (t text)", "INSERT INTO noise VALUES ('little')")
    assert database.source.status(start, [ITEM]).idle is None
    database.sql("INSERT INTO noise SELECT repeat(md5(n::text), 40) FROM generate_series(1, 16000) n")
    found: list[SourceStatus] = []

    def is_idle() -> bool:
        """Not where the server has flushed its log up to the end of a page."""
        found.append(database.source.status(start, [ITEM]))
        return found[-1].idle is not None

    until(is_idle, "the server has flushed its log")
    idle = found[-1].idle
    assert not found[-1].has_changes and idle is not None
    database.sql("INSERT INTO item VALUES (1, 'after', 0)")
    database.source.acknowledge(idle)
    assert database.source.status(idle, [ITEM]).has_changes
    assert [record.key for record in records(database.read(idle, database.task(ITEM)))] == ["[1]"]
