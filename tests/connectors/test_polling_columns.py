"""A timestamp column that is not the one by which the last interval was read: its rows are in no known place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source import Boundary, HoleFound
from airflow_cdc_provider.connectors.sources.polling.intervals import IntervalPlanner, poll_status, split_intervals
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.pages import Page
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PageEnd,
    PollPosition,
    parse_position,
    position_of,
    to_text,
)
from airflow_cdc_provider.connectors.sources.polling.reading import read_items
from airflow_cdc_provider.core.log.change_log import RELOAD
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from tests.connectors.polled import SCHEMA, START, TASK
from tests.connectors.test_jdbc_poll import Shop, ago
from tests.connectors.test_salesforce_poll import LATER_S, Crm, crm, fill, records

HALF_READ = PageEnd(START + timedelta(seconds=60), '["k"]')


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


def no_pages(lo: PollPosition, limit: PollPosition) -> Iterator[Page]:
    yield from ()


@pytest.mark.parametrize("after", [None, HALF_READ])
@pytest.mark.parametrize(("before", "now", "copied"), [("a", "b", True), ("a", "a", False), ("", "b", False)])
def test_a_table_is_copied_again_when_another_column_is_polled(
    after: PageEnd | None, before: str, now: str, copied: bool
) -> None:
    """Positions of earlier versions name no column."""
    start = PollPosition(1, START + timedelta(seconds=500), START, after, "", SCHEMA.key if after else (), before)
    planner = IntervalPlanner(START + timedelta(seconds=900), PollingOptions(), timestamp_columns={"s.t": now})
    position, found = position_of({"s.t": start}), list[list[str]]()
    for moment in range(2):
        later = replace(planner, now=planner.now + timedelta(seconds=400 * moment))
        limit = poll_status(position, ["s.t"], later, lambda *_: True).limit
        (split,) = split_intervals(position, limit)
        found.append([one.kind for one in read_items(split, TASK, 1, no_pages) if isinstance(one, HoleFound)])
        position = dict(limit)
        end = parse_position(position["s.t"])
        assert (end.column, end.after) == (now, None)
    assert found == [[RELOAD] if copied else [], []]


def test_a_position_of_a_column_is_read_back_from_its_text() -> None:
    position = PollPosition(1, START, START, HALF_READ, "1", ("k",), "updated_at")
    assert parse_position(to_text(position)) == position
    assert "column" not in json.loads(to_text(replace(position, column="")))


def test_a_sql_table_is_copied_again_under_another_column(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop.db")
    shop.sql("CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, updated_at DATETIME NOT NULL, moved_at DATETIME)")
    shop.sql("INSERT INTO t VALUES (1, ?, ?)", ago(7200), ago(90_000))
    polling = shop.polling()
    polling.position = polling.source.open_stream(["main.t"])
    assert polling.window(polling.task("main.t")) == []
    moved = shop.polling(timestamp_columns={"main.t": "moved_at"})
    moved.position = polling.position
    hole, _ = moved.window(moved.task("main.t"))
    assert isinstance(hole, HoleFound) and (hole.table, hole.kind) == ("main.t", RELOAD)
    assert "moved_at" in hole.detail and "updated_at" in hole.detail
    assert moved.window(moved.task("main.t")) == []
    shop.connection.close()


@pytest.mark.server
def test_an_interval_that_is_half_read_skips_no_row_under_another_column(org: SalesforceOrg) -> None:
    def changed(columns: dict[str, str], before: Crm) -> Crm:
        other = crm(org, page_rows=100, objects=["Account"], timestamp_columns=columns)
        other.position, other.rows = before.position, before.rows
        return other

    first = crm(org, page_rows=100, objects=["Account"])
    accounts = fill(org, "Account", 250)
    org.clock.advance(1)
    with org.transaction() as tx:
        for account in accounts:
            tx.update("Account", account, {"Phone": "1"}, system=True)
    org.clock.advance(LATER_S)
    status = first.source.status(first.position, ["Account"])
    (split,) = first.source.splits(first.position, status.limit)
    for item in first.source.read(split, [first.task("Account")], 1):
        if isinstance(item, Boundary):
            first.position = {**first.position, **item.position}
            break
    assert parse_position(first.position["Account"]).column == "SystemModstamp"
    second = changed({"Account": "LastModifiedDate"}, first)
    (hole,) = [item for item in second.window() if isinstance(item, HoleFound)]
    assert (hole.table, hole.kind) == ("Account", RELOAD)
    second.copy("Account")
    org.clock.advance(LATER_S)
    items = second.window()
    assert not [item for item in items if isinstance(item, HoleFound)]
    assert second.differences() == [] and len(records(items)) <= 250
