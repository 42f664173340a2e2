"""Intervals, pages and positions of polled tables, against a table that is written to all the time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.polling.intervals import split_intervals
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.pages import Query, Row, read_pages
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PageEnd,
    PollPosition,
    order_key,
    parse_position,
    table_positions,
    to_text,
)
from airflow_cdc_provider.connectors.sources.polling.reading import first_query
from airflow_cdc_provider.core.errors import CheckFailed, PositionLost
from tests.connectors.polled import START, Polled, Write, holes, records
from tests.model import seeds

COMMIT_S, OVERLAP_S = 300, 600
OPTIONS = PollingOptions(commit_latency=timedelta(seconds=COMMIT_S), timestamp_latency=timedelta(seconds=OVERLAP_S))


def options(page_rows: int = 2, **more: timedelta) -> PollingOptions:
    return PollingOptions(
        **{"commit_latency": OPTIONS.commit_latency, "timestamp_latency": OPTIONS.timestamp_latency, **more},  # type: ignore[arg-type]
        page_rows=page_rows,
    )


writes = st.lists(
    st.builds(
        Write,
        at=st.integers(0, 4000),
        key=st.sampled_from("abcdefg"),
        late=st.one_of(st.none(), st.integers(0, COMMIT_S + OVERLAP_S), st.sampled_from([0, 1, COMMIT_S])),
        value=st.integers(0, 9),
    ),
    max_size=25,
).map(lambda some: sorted(some, key=lambda write: write.at))


@settings(max_examples=seeds.histories(150), deadline=None)
@given(
    writes,
    st.lists(st.tuples(st.integers(1, 900), st.integers(1, 4)), min_size=1, max_size=12),
    st.integers(1, 4),
    st.integers(0, 40),
    st.integers(0, 12),
)
def test_case_35_the_copy_ends_equal_to_the_table_whatever_is_committed_late(
    writes: list[Write], ticks: list[tuple[int, int]], page_rows: int, page_s: int, copied_at: int
) -> None:
    """Equal timestamps with other values, rows without any, windows that end behind any page, a copy at any time,
    windows during the copy, slow pages."""
    table = Polled(options(page_rows), writes, page_s=page_s)
    table.open()
    copied = False
    for at, (seconds, boundaries) in enumerate(ticks):
        table.now_s += seconds
        status, sealed = table.status(), table.position
        if status.has_changes:
            table.window(status.limit, boundaries)
        elif status.idle:
            table.position = status.idle
        if at >= copied_at % len(ticks) and not copied:
            copied = True
            table.now_s += page_s
            table.copy(sealed)
        if copied:
            table.apply()
    table.page_s = 0
    table.now_s += 4000
    table.catch_up()
    table.now_s += COMMIT_S + OVERLAP_S + 1
    table.catch_up(1)
    assert table.held == {key: write.value for key, write in table.rows().items()}


def test_case_35_a_commit_behind_the_high_mark_is_read_within_the_latencies() -> None:
    late = Write(1190, "late", COMMIT_S + OVERLAP_S - 10, 2)
    table = Polled(options(), [Write(10, "a", 0, 1), Write(900, "b", 0, 1), late])
    table.open()
    table.copy(table.position)
    table.now_s = 1180
    table.catch_up()
    assert parse_position(table.position["s.t"]).upto > START + timedelta(seconds=late.at - (late.late or 0))
    assert table.held == {"a": 1}, "b is too young to be read"
    table.now_s = 1200
    table.catch_up()
    assert table.held == {"a": 1, "b": 1, "late": 2}


def test_a_row_is_read_once_its_timestamp_is_old_enough() -> None:
    table = Polled(options(), [Write(100, "a", 0, 1)])
    table.open()
    table.now_s = 100 + COMMIT_S - 1
    assert not table.status().has_changes
    table.now_s += 1
    assert table.status().has_changes


def test_case_36_more_rows_with_one_timestamp_than_a_page_and_a_window_lose_nothing() -> None:
    table = Polled(options(3), [Write(50, f"k{number:03}", 0, number) for number in range(100)])
    table.open()
    table.now_s = 1000
    windows = 0
    while (status := table.status()).has_changes and windows < 100:
        table.window(status.limit, 2)
        table.apply()
        windows += 1
        table.now_s += 5
        if "after" not in json.loads(table.position["s.t"]):
            break
    assert table.held == {f"k{number:03}": number for number in range(100)}
    assert windows <= 18, "a continued interval does not repeat the overlap"


def test_case_38_the_mark_is_never_ahead_of_rows_that_were_not_read() -> None:
    """A window that is cut keeps the end of its interval, and the position inside it."""
    table = Polled(options(2), [Write(10 * number, f"k{number}", 0, number) for number in range(1, 8)])
    table.open()
    table.now_s = 1000
    table.window(table.status().limit, 1)
    position = parse_position(table.position["s.t"])
    assert position.after == PageEnd(START + timedelta(seconds=20), '["k2"]')
    table.now_s = 5000
    limit = table.status().limit
    assert parse_position(limit["s.t"]).upto == position.upto == START + timedelta(seconds=1000 - COMMIT_S)


def test_rows_without_timestamp_are_read_after_the_others_and_a_window_may_end_among_them() -> None:
    table = Polled(options(1), [Write(10, "a", 0, 1), *(Write(10, key, None, 2) for key in "xyz")])
    table.open()
    table.now_s = 1000
    taken = table.window(table.status().limit, 2)
    assert [record.key for record in records(taken)] == ['["a"]', '["x"]']
    assert parse_position(table.position["s.t"]).after == PageEnd(None, '["x"]')
    taken = table.window(table.status().limit, 9)
    assert [record.key for record in records(taken)] == ['["y"]', '["z"]']


def test_the_rows_without_timestamp_after_a_continued_interval_begin_with_the_first_key() -> None:
    table = Polled(options(1), [Write(10, "m", 0, 1), Write(10, "b", None, 2)])
    table.open()
    table.now_s = 1000
    table.window(table.status().limit, 1)
    taken = table.window(table.status().limit, 9)
    assert [record.key for record in records(taken)] == ['["b"]']


def test_changes_read_before_a_copy_began_are_not_applied_over_it() -> None:
    """A row is read, deleted, and then the table is copied; the window is applied after the copy."""
    table = Polled(options(), [Write(10, "a", 0, 1), Write(500, "a", 0, 1, gone=True)])
    table.open()
    table.now_s = 400
    sealed = table.position
    table.window(table.status().limit, 9)
    table.now_s = 600
    table.copy(sealed)
    assert table.behind
    table.apply()
    assert table.held == {}


def test_a_clock_that_goes_back_moves_neither_position_nor_order_back() -> None:
    table = Polled(options(), [Write(650, "a", 0, 1)])
    table.open()
    table.now_s = 1000
    first = records(table.window(table.status().limit, 9))
    before = parse_position(table.position["s.t"])
    table.now_s = -100_000
    assert not table.status().has_changes
    assert table.planner.limit(before, "s.t") == PollPosition(before.round + 1, before.upto, before.audited)
    table.now_s = 1400
    assert records(table.window(table.status().limit, 9))[0].order_key > first[0].order_key


def test_an_idle_table_advances_every_hour_and_not_at_every_run() -> None:
    table = Polled(options(), [])
    table.open()
    table.now_s = 3599
    assert (table.status().has_changes, table.status().idle) == (False, None)
    table.now_s = 3600
    idle = table.status().idle
    assert idle and parse_position(idle["s.t"]).upto == START + timedelta(seconds=3600 - COMMIT_S)


def test_a_table_added_later_starts_at_the_first_position_of_the_others() -> None:
    """Its copy is not older than the window that ended there."""
    one, two = PollPosition(5, START, START), PollPosition(7, START + timedelta(hours=1), START)
    position = {"s.a": to_text(one), "s.b": to_text(two)}
    assert table_positions(position, ["s.a", "s.b", "s.c"])["s.c"] == PollPosition(7, START, START)
    east = {**position, "s.b": to_text(replace(two, offset=timedelta(hours=2)))}
    assert table_positions(east, ["s.c"])["s.c"].offset == timedelta(hours=2), "that of the source"
    limit = {"s.c": to_text(PollPosition(9, START + timedelta(hours=2), START))}
    (interval,) = split_intervals(position, limit)
    assert parse_position(interval.lo["s.c"]).upto == START and interval.table == "s.c"


def test_a_new_table_gets_its_position_in_the_log_without_changes() -> None:
    table = Polled(options(), [])
    table.position = {"s.other": to_text(PollPosition(5, START, START))}
    table.now_s = 60
    status = table.status()
    assert not status.has_changes and status.idle and status.idle.keys() == {"s.other", "s.t"}


@pytest.mark.parametrize("position", [{}, {"slot": "0/16B3748"}, {"s.t": "7 AAA= 2026-01-01T00:00:00Z"}])
def test_a_position_of_another_kind_is_lost(position: dict[str, str]) -> None:
    with pytest.raises(PositionLost, match="SRC013"):
        table_positions(position, ["s.t"])


def test_a_due_audit_is_a_hole_of_its_own_and_no_interval_is_left_out() -> None:
    table = Polled(options(key_audit=timedelta(hours=1)), [Write(10, "a", 0, 1)])
    table.open()
    table.now_s = 3600
    taken = table.window(table.status().limit, 9)
    (hole,) = holes(taken)
    assert hole.kind == "audit" and not records(taken)
    assert hole.order_key == order_key(1, parse_position(table.position["s.t"]).round, 0)
    taken = table.window(table.status().limit, 9)
    assert [record.key for record in records(taken)] == ['["a"]'] and not holes(taken)


def test_a_limit_that_was_planned_before_an_audit_is_no_audit() -> None:
    """The source no longer lists deletes: the window ends with an audit, and the same limit is read up to."""
    table = Polled(options(), [Write(10, "a", 0, 1)])
    table.open()
    table.now_s = 7200
    limit = table.status().limit
    start = parse_position(table.position["s.t"])
    table.position = {"s.t": to_text(replace(start, audited=table.now))}
    taken = table.window(limit, 9)
    assert [record.key for record in records(taken)] == ['["a"]'] and not holes(taken)


@pytest.mark.parametrize(
    ("key", "schema", "continues"),
    [(("a", "b"), "1", True), (("b", "a"), "1", False), (("a",), "1", False), (("a", "b"), "2", False)],
)
def test_an_interval_continues_after_a_key_of_the_same_columns_only(
    key: tuple[str, ...], schema: str, continues: bool
) -> None:
    last = START + timedelta(seconds=70)
    ended = PollPosition(1, START + timedelta(seconds=500), START, PageEnd(last, '["x",1]'), "1", ("a", "b"))
    limit = PollPosition(2, ended.upto, START, schema=schema)
    query = first_query(ended, limit, OPTIONS, key)
    assert query.upto == ended.upto and query.after == (ended.after if continues else None)
    assert continues or query.since == last
    old = replace(ended, key=())
    assert (first_query(old, limit, OPTIONS, key).after is not None) == (len(key) == 2 and schema == "1")
    assert parse_position(to_text(ended)) == ended and parse_position(to_text(old)) == old
    assert first_query(replace(ended, after=PageEnd(last, "")), limit, OPTIONS, key).after == PageEnd(last, "")


def test_pages_that_do_not_advance_are_refused() -> None:
    """A timestamp of nanoseconds is read in microseconds, so the same rows would be read for ever."""
    rows = [Row(START, '["a"]', "{}"), Row(START, '["b"]', "{}")]
    with pytest.raises(CheckFailed, match="SRC061"):
        list(read_pages(lambda query: rows, Query(START, START, 2), include_null_timestamps=False))


@given(
    st.integers(0, 2**63),
    st.datetimes(),
    st.one_of(st.none(), st.tuples(st.one_of(st.none(), st.datetimes()), st.text(max_size=5))),
)
def test_a_position_is_read_back_from_its_text(number: int, upto: object, after: object) -> None:
    assert isinstance(upto, datetime)
    made = None
    if isinstance(after, tuple):
        made = PageEnd(after[0] and after[0].replace(tzinfo=UTC), json.dumps([after[1]]))
    position = PollPosition(number, upto.replace(tzinfo=UTC), START, made)
    assert parse_position(to_text(position)) == position


def test_every_page_ends_with_a_boundary_and_the_last_one_is_at_the_limit() -> None:
    table = Polled(options(2), [Write(10, key, 0, 1) for key in "abcde"])
    table.open()
    table.now_s = 1000
    limit = table.status().limit
    taken = table.window(limit, 99)
    assert [type(item).__name__ for item in taken].count("Boundary") == 4
    assert isinstance(taken[-1], Boundary) and taken[-1].position == limit
