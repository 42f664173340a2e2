"""Timestamps of SQLite, which stores any value in any column: texts in several forms, and numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from tests.connectors.polled import records
from tests.connectors.polled_database import Polling, images

FORMS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%d %H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S.%f+00:00",
    "%Y-%m-%dT%H:%M:%S.%f9Z",
)


class Visits:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.info = ConnectionInfo("db", schema=str(path))
        self.sql("CREATE TABLE visits (id INTEGER PRIMARY KEY NOT NULL, updated_at DATETIME NOT NULL, seen DATETIME)")
        self.sql("CREATE INDEX by_time ON visits (updated_at)")

    def sql(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    def add(self, number: int, form: str, seconds: float) -> None:
        moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=seconds)
        self.sql("INSERT INTO visits VALUES (?, ?, NULL)", number, moment.strftime(form))

    def polling(self, **options: Any) -> Polling:
        polling = Polling("sqlite", self.info, key_audit=86400, **options)
        polling.position = polling.source.open_stream(["main.visits"])
        return polling


@pytest.fixture
def visits(tmp_path: Path) -> Iterator[Visits]:
    visits = Visits(tmp_path / "visits.db")
    yield visits
    visits.connection.close()


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_one_second_are_not_lost_at_the_end_of_a_page(visits: Visits, form: str) -> None:
    polling = visits.polling(page_rows=2)
    for number in range(7):
        visits.add(number, form, 30)
    visits.sql("UPDATE visits SET updated_at = (SELECT min(updated_at) FROM visits)")
    assert [row["id"] for _, row in images(polling.window(polling.task("main.visits")))] == list(range(7))


def test_rows_of_all_forms_arrive_in_the_order_of_their_times(visits: Visits) -> None:
    polling = visits.polling(page_rows=2)
    for number, form in zip(range(20), cycle(FORMS), strict=False):
        visits.add(number, form, 90 - 2 * number)
    items = polling.window(polling.task("main.visits"))
    assert [row["id"] for _, row in images(items)] == list(range(20))
    times = [record.commit_ts for record in records(items)]
    assert all(0 < (datetime.now(UTC) - time).total_seconds() < 900 for time in times if time)


def test_a_zone_in_the_text_outweighs_the_configured_one(visits: Visits) -> None:
    polling = visits.polling(time_zone="+02:00")
    visits.add(1, "%Y-%m-%d %H:%M:%S", 30 - 7200)
    visits.add(2, "%Y-%m-%dT%H:%M:%S.%fZ", 30)
    assert [row["id"] for _, row in images(polling.window(polling.task("main.visits")))] == [1, 2]


@pytest.mark.parametrize(
    "stored", [1767261600, 2461042.5, "2026-01-31", "2026-1-5 10:00:00", "2026-02-31 10:00:00", "now", b"\xff", ""]
)
def test_a_timestamp_in_an_unknown_form_is_refused_in_words(visits: Visits, stored: Any) -> None:
    polling = visits.polling(time_zone="UTC")
    task = polling.task("main.visits")
    visits.sql("INSERT INTO visits VALUES (1, ?, NULL)", stored)
    assert polling.source.status(polling.position, ["main.visits"]).has_changes, "its reader reports the problem"
    (problem,) = polling.source.check([task])
    assert problem.code == "SRC062" and problem.where == "main.visits.updated_at"
    assert repr(stored) in problem.found and problem.do
    for act in (polling.window, polling.copy):
        with pytest.raises(CheckFailed, match="SRC062"):
            act(task)
    visits.sql("UPDATE visits SET updated_at = '2026-01-31 10:00:00'")
    assert polling.source.check([task]) == []


def test_a_timestamp_of_another_zone_is_refused(visits: Visits) -> None:
    polling = visits.polling()
    visits.add(1, "%Y-%m-%d %H:%M:%S+02:00", 30)
    with pytest.raises(CheckFailed, match="SRC062"):
        polling.window(polling.task("main.visits"))


def test_pages_do_not_follow_a_key_whose_equal_values_have_several_texts(visits: Visits) -> None:
    visits.sql("CREATE TABLE hours (at DATETIME PRIMARY KEY NOT NULL, updated_at DATETIME NOT NULL)")
    visits.sql("CREATE INDEX by_hour ON hours (updated_at)")
    polling = visits.polling()
    (problem,) = polling.source.check([polling.task("main.hours")])
    assert problem.code == "SRC063" and "at" in problem.found


@pytest.mark.parametrize("stored", [20260131, "yesterday", "2026-02-31 10:00:00"])
def test_another_column_with_a_value_that_is_no_time_makes_a_bad_record(visits: Visits, stored: Any) -> None:
    polling = visits.polling()
    visits.add(1, FORMS[0], 30)
    visits.sql("UPDATE visits SET seen = ?", stored)
    (record,) = records(polling.window(polling.task("main.visits")))
    assert str(record.op) == "unreadable"


def test_a_time_with_a_zone_is_copied_in_utc(visits: Visits) -> None:
    polling = visits.polling()
    visits.add(1, FORMS[0], 30)
    visits.sql("UPDATE visits SET seen = '2026-01-31 10:00:00.5+02:00'")
    task = polling.task("main.visits")
    ((_, row),) = images(polling.window(task))
    assert row["seen"] == "2026-01-31T08:00:00.500000"
    polling.copy(task)
    assert polling.rows["main.visits"]["[1]"]["seen"] == datetime(2026, 1, 31, 8, 0, 0, 500000)
