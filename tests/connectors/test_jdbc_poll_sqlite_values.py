"""Values of SQLite, which keeps what a program gives it, whatever the column declares."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import BadRecordFound, CheckFailed
from airflow_cdc_provider.core.spec.conditions import Comparison
from airflow_cdc_provider.core.spec.definition import Condition
from tests.connectors.polled import records
from tests.connectors.polled_database import Polling, images

COLUMNS = {
    "flag": "BOOLEAN",
    "whole": "BIGINT",
    "price": "DECIMAL(10,2)",
    "share": "DOUBLE",
    "day": "DATE",
    "note": "TEXT",
    "label": "VARCHAR(10)",
    "file": "BLOB",
    "doc": "JSON",
    "hour": "TIME",
}
OTHERS: list[tuple[str, Any]] = [
    ("flag", "no"),
    ("flag", 2),
    ("flag", 0.5),
    ("flag", b"\0"),
    ("whole", "many"),
    ("whole", 1.5),
    ("whole", 1e30),
    ("whole", b"\1"),
    ("price", "free"),
    ("price", 1.234),
    ("price", b"\1"),
    ("share", "half"),
    ("share", b"\1"),
    ("day", 20260131),
    ("day", b"2026-01-31"),
    ("note", b"\xff\0"),
    ("label", b"red"),
    ("file", 5),
    ("file", 0.5),
    ("file", "text"),
    ("doc", b"\xff"),
    ("hour", b"\xff"),
]
OWN: list[tuple[str, Any, Any]] = [
    ("flag", 1, True),
    ("flag", "0", False),
    ("whole", 2**63 - 1, 2**63 - 1),
    ("whole", "12", 12),
    ("whole", 12.0, 12),
    ("price", 12.5, Decimal("12.50")),
    ("price", 3, Decimal("3.00")),
    ("share", 0.1, 0.1),
    ("share", "2", 2.0),
    ("note", 5, "5"),
    ("label", "longer than ten", "longer than ten"),
    ("file", b"\0\1", b"\0\1"),
    ("doc", '{"a": 1}', '{"a": 1}'),
    ("doc", 5, "5"),
    ("hour", "10:00", "10:00"),
]


class Things:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self.connection.execute(f"CREATE TABLE things (id INT PRIMARY KEY NOT NULL, updated_at DATETIME, {columns})")
        self.connection.execute("CREATE INDEX by_time ON things (updated_at)")
        self.polling = Polling("sqlite", ConnectionInfo("db", schema=str(path)), key_audit=86400)
        self.polling.position = self.polling.source.open_stream(["main.things"])

    def add(self, number: Any, **values: Any) -> None:
        names = "".join(f", {name}" for name in values)
        marks = ", ?" * len(values)
        self.connection.execute(
            f"INSERT INTO things (id, updated_at{names}) VALUES (?, datetime('now', '-30 seconds'){marks})",
            (number, *values.values()),
        )


@pytest.fixture
def things(tmp_path: Path) -> Iterator[Things]:
    things = Things(tmp_path / "things.db")
    yield things
    things.connection.close()


@pytest.mark.parametrize(("name", "value"), OTHERS)
def test_a_value_of_another_type_than_its_column_is_never_another_value(things: Things, name: str, value: Any) -> None:
    things.add(1, **{name: value})
    task = things.polling.task("main.things")
    (record,) = records(things.polling.window(task))
    assert str(record.op) == "unreadable" and f"{name}: a " in (record.after or "")
    with pytest.raises(BadRecordFound, match="CPY009") as refused:
        things.polling.copy(task)
    assert name in refused.value.problems[0].found and "correct the rows" in refused.value.problems[0].do


@pytest.mark.parametrize(("name", "stored", "value"), OWN)
def test_a_value_that_the_server_converts_to_the_type_of_its_column_is_copied(
    things: Things, name: str, stored: Any, value: Any
) -> None:
    things.add(1, **{name: stored})
    task = things.polling.task("main.things")
    ((_, row),) = images(things.polling.window(task))
    things.polling.copy(task)
    copied = things.polling.rows["main.things"]["[1]"][name]
    assert copied == value and type(copied) is type(value)
    assert row[name] == value if name not in ("price", "file") else row[name]


@pytest.mark.parametrize("key", ["abc", b"\1", 1.5])
def test_a_key_of_another_type_than_its_column_is_refused(things: Things, key: Any) -> None:
    things.add(key, whole=1)
    task = things.polling.task("main.things")
    with pytest.raises(CheckFailed, match="CPY009"):
        things.polling.window(task)
    with pytest.raises(BadRecordFound, match="CPY009"):
        things.polling.copy(task)


def test_a_row_filter_never_leaves_out_a_value_of_another_type(things: Things) -> None:
    things.add(1, whole="many")
    task = things.polling.task("main.things", where=(Condition("whole", Comparison.GREATER, 5),))
    with pytest.raises(CheckFailed, match="CPY009"):
        things.polling.window(task)
    with pytest.raises(BadRecordFound, match="CPY009"):
        things.polling.copy(task)


def test_a_text_that_is_not_utf8_is_a_bad_record(things: Things) -> None:
    things.connection.execute(
        "INSERT INTO things (id, updated_at, note) VALUES (1, datetime('now', '-30 seconds'), CAST(x'ff41' AS TEXT))"
    )
    (record,) = records(things.polling.window(things.polling.task("main.things")))
    assert str(record.op) == "unreadable"
