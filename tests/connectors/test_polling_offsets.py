"""A time zone of the definition that is changed under a copy. Positions are in UTC, and rows have the time of a wall
clock: no row between the bounds of both offsets is left out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.polling.intervals import IntervalPlanner
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PageEnd,
    PollPosition,
    parse_position,
    to_text,
)
from airflow_cdc_provider.connectors.sources.polling.reading import first_query
from tests.connectors.polled_database import Polling, images
from tests.connectors.test_jdbc_poll import Shop

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
OPTIONS = PollingOptions(timestamp_latency=timedelta(0))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path / "shop.db")
    shop.sql("CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, updated_at DATETIME NOT NULL)")
    yield shop
    shop.connection.close()


def wall(hours: float, ago_s: float) -> str:
    moment = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=hours, seconds=-ago_s)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def ids(polling: Polling) -> list[int]:
    return [row["id"] for _, row in images(polling.window(polling.task("main.t")))]


@pytest.mark.parametrize("before", [None, "+00:00", "-03:00"])
@pytest.mark.parametrize("after", ["+01:00", "+02:00"])
@pytest.mark.parametrize("audits", [False, True])
def test_rows_between_the_bounds_of_both_offsets_arrive(
    shop: Shop, before: str | None, after: str, audits: bool
) -> None:
    """The programs write the time of a zone that is two hours east of UTC."""
    options: dict[str, Any] = {"timestamp_latency": 1, "key_audit": 1} if audits else {"timestamp_latency": 1}
    polling = shop.polling(time_zone=before, **{**options, "key_audit": None})
    polling.position = polling.source.open_stream(["main.t"])
    shop.sql("INSERT INTO t VALUES (1, ?)", wall(2, 60))
    assert ids(polling) == [], "they arrive late"
    changed = shop.polling(time_zone=after, **options)
    changed.position = {
        table: to_text(replace(parse_position(text), audited=START)) for table, text in polling.position.items()
    }
    if audits:
        assert ids(changed) == [], "an audit reads no rows"
        audited = changed.position
        changed = shop.polling(time_zone=after, timestamp_latency=1)
        changed.position = audited
    shop.sql("INSERT INTO t VALUES (2, ?)", wall(int(after[2]), 60))
    assert 2 in ids(changed)


def test_an_interval_is_read_in_the_offset_in_which_it_was_planned(shop: Shop) -> None:
    polling, changed = (shop.polling(time_zone=zone, timestamp_latency=1) for zone in (None, "+02:00"))
    polling.position = polling.source.open_stream(["main.t"])
    shop.sql("INSERT INTO t VALUES (1, ?)", wall(1, 60))
    shop.sql("INSERT INTO t VALUES (3, ?)", wall(0, 0.5))
    polling.source.tables()
    time.sleep(2)
    status = polling.source.status(polling.position, ["main.t"])
    (split,) = changed.source.splits(polling.position, status.limit)
    items = [*changed.source.read(split, [changed.task("main.t")], 1)]
    assert [row["id"] for _, row in images(items)] == [3]
    changed.position = polling.position | items[-1].position if isinstance(items[-1], Boundary) else {}
    assert 1 in ids(changed)


@pytest.mark.parametrize(
    ("before", "after", "least"),
    [(0, 2, -2), (2, 0, 0), (-5, 1, -6), (1, 1, 0), (None, 2, -14), (None, -5, -7), (2, None, 0), (None, None, 0)],
)
def test_an_interval_continues_from_the_least_moment_of_both_offsets(
    before: int | None, after: int | None, least: int
) -> None:
    lo, limit = (
        PollPosition(number, START, START, offset=None if hours is None else hours * HOUR)
        for number, hours in ((1, before), (2, after))
    )
    assert first_query(lo, limit, OPTIONS, ("id",)).since == START + least * HOUR
    ended = replace(lo, after=PageEnd(START, "[1]"), key=("id",))
    query = first_query(ended, limit, OPTIONS, ("id",))
    assert query.after == PageEnd(START + least * HOUR, "[1]"), "the same row by the wall clock, or an earlier one"
    renamed = first_query(ended, limit, OPTIONS, ("other",))
    assert (renamed.since, renamed.after) == (START + least * HOUR, None)
    without = replace(lo, after=PageEnd(None, "[1]"), key=("id",))
    assert first_query(without, limit, OPTIONS, ("id",)).after == PageEnd(None, "[1]")


def test_a_position_keeps_the_offset_under_which_rows_were_read() -> None:
    planner = IntervalPlanner(START, OPTIONS, offsets={"t": HOUR})
    lo = planner.start("t")
    assert lo.offset == HOUR and parse_position(to_text(lo)) == lo
    later = IntervalPlanner(START + HOUR, OPTIONS, offsets={"t": 2 * HOUR})
    assert later.limit(lo, "t").offset == 2 * HOUR
    audit = replace(later, options=replace(OPTIONS, key_audit=timedelta(seconds=1)))
    assert audit.limit(lo, "t").offset == HOUR, "an audit reads no rows"
    assert IntervalPlanner(START + HOUR, OPTIONS).limit(lo, "t").offset == HOUR
    assert parse_position(to_text(replace(lo, offset=None))).offset is None
