"""Values of PostgreSQL that no target type can represent are never replaced by another value, and in the key never
lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.postgres.proofs import SnapshotProofs
from airflow_cdc_provider.core.errors import BadRecordFound
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.proof.key_intervals import WHOLE
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable
from tests.connectors.conftest import Database, records

BEYOND = [
    ("date", "infinity"),
    ("date", "-infinity"),
    ("date", "0044-03-15 BC"),
    ("date", "10000-01-01"),
    ("timestamp", "infinity"),
    ("timestamp", "0044-03-15 10:00:00.5 BC"),
    ("timestamp", "12024-01-01 00:00:00.25"),
    ("timestamptz", "-infinity"),
    ("timestamptz", "0044-03-15 10:00:00.5+00 BC"),
    ("timestamptz", "12024-01-01 00:00:00+00"),
    ("numeric(10,2)", "NaN"),
]
WITHIN = {"date": "9999-12-31", "timestamp": "9999-12-31 23:59:59.999999", "timestamptz": "0001-01-01 00:00:00+00"}
FEW, MANY = 1, 60
"""Changes that are decoded one by one, and in a batch."""


def with_values(database: Database, native: str, value: str, rows: int = FEW) -> None:
    within = WITHIN.get(native, "1.50")
    database.sql(
        f"INSERT INTO odd VALUES (0, '{value}')",
        f"INSERT INTO odd SELECT n, '{within}' FROM generate_series(1, {rows}) n",
    )


def table(database: Database, columns: str) -> dict[str, str]:
    database.sql(f"CREATE TABLE odd ({columns})")
    database.publish("odd")
    return database.source.open_stream(["public.odd"])


@pytest.mark.parametrize(("native", "value"), BEYOND)
def test_outside_the_key_its_record_is_unreadable_unless_the_definition_keeps_it(
    database: Database, native: str, value: str
) -> None:
    start = table(database, f"id int PRIMARY KEY, v {native}")
    with_values(database, native, value)
    task = database.task("public.odd")
    bad, good = records(database.read(start, task))
    why = undecoded(bad)
    assert why is not None and good.op == "insert"
    assert (bad.key, why.columns, why.known) == ("[0]", ("v",), {"id": 0})
    assert "columns: {cast: {v: text}}" in why.reason and "set_null" in why.reason
    with database.source.copy(task, 1, {}, 1) as copy, pytest.raises(BadRecordFound) as met:
        database.copied(copy)
    assert met.value.problems[0].code == "CPY009" and "v: " in met.value.problems[0].found


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_later_change_of_its_row_is_readable_unless_the_table_has_no_key(
    database: Database, key: str, rows: int
) -> None:
    start = table(database, f"id int {key}, v date")
    database.sql(
        "ALTER TABLE odd REPLICA IDENTITY FULL",
        f"INSERT INTO odd SELECT n, 'infinity' FROM generate_series(1, {rows * 2}) n",
        f"UPDATE odd SET v = '2026-01-02' WHERE id <= {rows}",
        f"DELETE FROM odd WHERE id > {rows}",
    )
    later = records(database.read(start, database.task("public.odd")))[rows * 2 :]
    assert len(later) == rows * 2 and all((undecoded(one) is None) is bool(key) for one in later)
    if key:
        update, delete = later[0], later[-1]
        assert (update.op, json.loads(update.after or "")) == ("update", {"id": 1, "v": "2026-01-02"})
        assert (delete.op, json.loads(delete.before or "")) == ("delete", {"id": rows * 2})


@pytest.mark.parametrize(("native", "value"), BEYOND)
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_set_null_writes_null_and_the_text_to_another_column(
    database: Database, native: str, value: str, rows: int
) -> None:
    start = table(database, f"id int PRIMARY KEY, v {native}")
    with_values(database, native, value, rows)
    task = database.task("public.odd", on_unrepresentable=OnUnrepresentable.SET_NULL)
    by_stream = {row["id"]: row for row in map(image, records(database.read(start, task)))}
    assert by_stream[0] == {"id": 0, "v": None, "_cdc_text_v": value}
    with database.source.copy(task, 1, {}, 1) as copy:
        by_copy = {row["id"]: row for row in database.copied(copy)}
        counted = SnapshotProofs(database.source.client, task, copy).sums([WHOLE])
    assert by_copy[0] == by_stream[0]
    for id in range(1, rows + 1):
        assert by_stream[id]["_cdc_text_v"] is by_copy[id]["_cdc_text_v"] is None
        assert by_stream[id]["v"] is not None and by_copy[id]["v"] is not None
    assert counted[0].rows == rows + 1


@pytest.mark.parametrize(("native", "value"), BEYOND)
@pytest.mark.parametrize("rule", OnUnrepresentable)
def test_in_the_key_it_stops_its_table(database: Database, native: str, value: str, rule: OnUnrepresentable) -> None:
    start = table(database, f"id int, v {native}, PRIMARY KEY (id, v)")
    with_values(database, native, value)
    task = database.task("public.odd", on_unrepresentable=rule)
    assert task.schema.names == ("id", "v")
    bad, good = records(database.read(start, task))
    why = undecoded(bad)
    assert why is not None and bad.key is None and good.key is not None
    assert "in the key" in why.reason and "cast: {v: text}" in why.reason and "set_null" not in why.reason
    with database.source.copy(task, 1, {}, 1) as copy, pytest.raises(BadRecordFound, match="in the key"):
        database.copied(copy)


@pytest.mark.parametrize(("native", "value"), [*BEYOND, ("float8", "-0"), ("bytea", "\\x00ff"), ("bool", "t")])
@pytest.mark.parametrize("key", [pytest.param("id", marks=pytest.mark.nightly), "id, v"])
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_cast_column_contains_the_texts_of_the_source(
    database: Database, native: str, value: str, key: str, rows: int
) -> None:
    within = {"float8": "1.5", "bytea": "\\x", "bool": "f"}.get(native) or WITHIN.get(native, "1.50")
    start = table(database, f"id int, v {native}, PRIMARY KEY ({key})")
    database.sql(
        f"INSERT INTO odd VALUES (0, '{value}')",
        f"INSERT INTO odd SELECT n, '{within}' FROM generate_series(1, {rows}) n",
    )
    task = database.task("public.odd", columns=Columns(cast={"v": "text"}))
    by_stream = {row["id"]: row["v"] for row in map(image, records(database.read(start, task)))}
    with database.source.copy(task, 1, {}, 1) as copy:
        by_copy = {row["id"]: row["v"] for row in database.copied(copy)}
    assert by_stream == by_copy == {0: value} | dict.fromkeys(range(1, rows + 1), within)


def test_an_unrepresentable_default_needs_a_copy(database: Database) -> None:
    table(database, "id int PRIMARY KEY")
    held = database.task("public.odd").schema
    start = database.now()
    database.sql("INSERT INTO odd VALUES (1)", "ALTER TABLE odd ADD v date DEFAULT 'infinity'")
    database.sql("INSERT INTO odd VALUES (2)")
    task = database.task("public.odd", held, on_unrepresentable=OnUnrepresentable.SET_NULL)
    (schema,) = [item for item in database.read(start, task) if isinstance(item, ChangeRecord) and item.op == "schema"]
    assert schema.warnings == ("initial_unknown",)


@pytest.mark.parametrize("native", ["float8", "real"])
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_negative_zero_in_the_key_is_zero_as_in_the_source(database: Database, native: str, rows: int) -> None:
    start = table(database, f"v {native} PRIMARY KEY, id int")
    database.sql(
        "INSERT INTO odd VALUES ('-0', 0)",
        f"INSERT INTO odd SELECT n, n FROM generate_series(1, {rows}) n",
        "UPDATE odd SET v = '0' WHERE id = 0",
        "UPDATE odd SET v = '-0' WHERE id = 0",
    )
    task = database.task("public.odd")
    changes = records(database.read(start, task))
    assert {record.key for record in changes if json.loads(record.after or "")["id"] == 0} == {"[0]"}
    assert {record.op for record in changes[-2:]} == {"update"}, "the key is unchanged"
    with database.source.copy(task, 1, {}, 1) as copy:
        assert [str(row["v"]) for row in database.copied(copy) if row["id"] == 0] == ["0.0"]


def image(record: ChangeRecord) -> dict[str, Any]:
    assert record.op == "insert", record
    row: dict[str, Any] = json.loads(record.after or "")
    return row
