"""Row filters: stream and copy select the same rows, and updates into and out of the filter."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, OnUnrepresentable
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.conftest import Database, records


def test_a_row_filter_turns_updates_into_inserts_and_deletes(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, n int)", "ALTER TABLE item REPLICA IDENTITY FULL")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql(
        "INSERT INTO item VALUES (1, 10), (2, 1), (3, NULL)",
        "UPDATE item SET n = 11 WHERE id = 1",
        "UPDATE item SET n = 2 WHERE id = 1",
        "UPDATE item SET n = 20 WHERE id = 2",
        "UPDATE item SET n = 3 WHERE id = 3",
        "UPDATE item SET id = 5 WHERE id = 2",
        "DELETE FROM item",
    )
    task = database.task("public.item", where=[Condition("n", Comparison.GREATER, 5)])
    items = database.read(start, task)
    assert [(record.op, record.key_before, record.key) for record in records(items)] == [
        ("insert", None, "[1]"),
        ("update", "[1]", "[1]"),
        ("delete", "[1]", None),
        ("insert", None, "[2]"),
        ("delete", "[2]", None),
        ("insert", None, "[5]"),
        ("delete", "[5]", None),
    ]
    assert sum(getattr(item, "count", 0) for item in items if not isinstance(item, ChangeRecord | TableSchema)) == 5


FILTERS = [
    Condition("i", Comparison.GREATER_OR_EQUAL, 2),
    Condition("i", Comparison.LESS, 2.5),
    Condition("i", Comparison.IN, (1, 3)),
    Condition("i", Comparison.NOT_IN, (1, 3)),
    Condition("i", Comparison.NOT_EQUAL, 1),
    Condition("i", Comparison.IS_NULL),
    Condition("t", Comparison.IS_NOT_NULL),
    Condition("t", Comparison.EQUAL, "it's"),
    Condition("t", Comparison.GREATER, "Z"),
    Condition("c", Comparison.EQUAL, "ab  "),
    Condition("f", Comparison.EQUAL, 0.1),
    Condition("f", Comparison.GREATER, 1e300),
    Condition("r", Comparison.LESS_OR_EQUAL, 0.1),
    Condition("n", Comparison.GREATER, 1.25),
    Condition("b", Comparison.EQUAL, True),
    Condition("d", Comparison.LESS, "2024-01-01"),
    Condition("d", Comparison.GREATER, "9999-12-31"),
    Condition("z", Comparison.LESS, "0001-01-01T00:00:00Z"),
    Condition("s", Comparison.LESS_OR_EQUAL, "9999-12-31T23:59:59.999999"),
    Condition("s", Comparison.GREATER, "2024-01-01T12:00:00"),
    Condition("z", Comparison.LESS_OR_EQUAL, "2024-01-01T12:00:00+02:00"),
    Condition("e", Comparison.EQUAL, "ok"),
    Condition("j", Comparison.EQUAL, '{"a": 1}'),
]


@pytest.fixture(scope="module")
def filtered(server: Any) -> Any:
    database = Database(server)
    database.sql(
        "CREATE TYPE mood AS ENUM ('ok', 'bad')",
        "CREATE TABLE item (id int PRIMARY KEY, i int, t text, c char(4), f float8, r real, n numeric(10,2), b bool,"
        " d date, s timestamp, z timestamptz, e mood, j jsonb)",
        "ALTER TABLE item REPLICA IDENTITY FULL",
    )
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql(
        "INSERT INTO item VALUES (0)",
        "INSERT INTO item VALUES (1, 1, 'it''s', 'ab', 0.1, 0.1, 1.25, true, 'infinity', 'infinity',"
        " '-infinity', 'ok', '{\"a\":1}')",
        "INSERT INTO item VALUES (2, 2, 'a', 'abc', 'NaN', 'NaN', 'NaN', false, '2023-12-31', '2024-01-01 12:00:00.5',"
        " '2024-01-01 10:00:00Z', 'bad', '{}')",
        "INSERT INTO item VALUES (3, 3, 'Ä', '', 'Infinity', 0.2, 1.26, NULL, '2024-01-01', '2024-01-01 12:00:00',"
        " '2024-01-01 10:00:00.000001Z', NULL, NULL)",
    )
    yield database, start
    database.drop()


@pytest.mark.parametrize("condition", FILTERS, ids=lambda c: f"{c.column} {c.op}")
def test_a_row_filter_selects_the_same_rows_in_stream_and_copy(filtered: Any, condition: Condition) -> None:
    database, start = filtered
    task = database.task("public.item", where=[condition], on_unrepresentable=OnUnrepresentable.SET_NULL)
    by_stream = {record.key for record in records(database.read(start, task))}
    with database.source.copy(task, 1, {}, 1) as copy:
        rows = database.copied(copy)
    assert by_stream == {f"[{row['id']}]" for row in rows}
    assert 0 < len(by_stream) < 4
