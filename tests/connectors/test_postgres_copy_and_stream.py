"""Copy plus stream equal the table: with concurrent writers, over many windows, for every row."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from typing import Any

import psycopg

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from tests.connectors.conftest import Database, ends, records
from tests.connectors.test_postgres_types import copied

TABLE = "public.item"
Rows = dict[str, dict[str, Any]]


def write(database: Database, seed: int, stop: threading.Event) -> None:
    """Random transactions over few keys, so that they conflict: some are rolled back, some fail."""
    chance = random.Random(seed)
    with database.connect(autocommit=False) as connection:
        while not stop.is_set():
            with contextlib.suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                for _ in range(chance.randint(1, 6)):
                    connection.execute(*statement(chance))
                if chance.random() < 0.9:
                    connection.commit()
            connection.rollback()


def statement(chance: random.Random) -> tuple[Any, tuple[Any, ...]]:
    one, other = chance.randint(1, 40), chance.randint(1, 40)
    match chance.choices(
        ("insert", "upsert", "update", "move", "delete", "large", "truncate"), (6, 4, 8, 5, 4, 3, 0.05)
    ):
        case ["insert"]:
            return "INSERT INTO item VALUES (%s, %s, NULL)", (one, other)
        case ["upsert"]:
            return "INSERT INTO item VALUES (%s, %s, 'é') ON CONFLICT (id) DO UPDATE SET n = excluded.n", (one, other)
        case ["update"]:
            return "UPDATE item SET n = n + 1 WHERE id BETWEEN %s AND %s", (one, one + 3)
        case ["move"]:
            return "UPDATE item SET id = %s WHERE id = %s", (one, other)
        case ["delete"]:
            return "DELETE FROM item WHERE id = %s", (one,)
        case ["large"]:
            large = "SELECT string_agg(md5((n + %s)::text), '') FROM generate_series(1, 100) n"
            return f"UPDATE item SET body = ({large}) WHERE id = %s", (other, one)
        case _:
            return "TRUNCATE item", ()


def apply(rows: Rows, record: ChangeRecord, moving: dict[str, dict[str, Any]]) -> None:
    """What a target does, in the simplest form. A row that moves keeps the values that the stream does not repeat."""
    values = json.loads(record.after or "{}")
    match record.op:
        case "truncate":
            rows.clear()
        case "insert":
            assert record.key is not None and record.key not in rows
            rows[record.key] = moving.pop(record.link_id or "", {}) | values
        case "update":
            assert record.key is not None
            rows[record.key].update(values)
        case "delete":
            assert record.key_before is not None
            gone = rows.pop(record.key_before)
            if record.link_id:
                moving[record.link_id] = gone


def rows_of(database: Database, copy: Copy) -> Rows:
    return {json.dumps([key]): row for key, row in copied(database, copy).items()}


def first_copy(database: Database, task: TableTask) -> tuple[Copy, Rows]:
    """A writer may truncate the table during a copy, which then fails and is made again."""
    while True:
        with contextlib.suppress(SourceUnavailable), database.source.copy(task, 1, {}, 2) as copy:
            return copy, rows_of(database, copy)


def test_a_copy_and_the_stream_after_it_equal_the_table(database: Database) -> None:
    database.sql(
        f"ALTER DATABASE {database.name} SET deadlock_timeout TO '20ms'",
        "CREATE TABLE item (id int PRIMARY KEY, n int, body text)",
    )
    database.publish("item")
    position = database.source.open_stream([TABLE])
    task = database.task(TABLE)
    stop = threading.Event()
    writers = [threading.Thread(target=write, args=(database, seed, stop)) for seed in range(3)]
    for writer in writers:
        writer.start()
    try:
        threading.Event().wait(0.5)
        copy, rows = first_copy(database, task)
        found: list[ChangeRecord] = []
        for number in range(8):
            threading.Event().wait(0.25)
            items = database.read(position, task)
            found += records(items)
            position = ends(items)[-1] if ends(items) else position
            if number % 3 == 0:
                database.source.acknowledge(position)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    found += records(database.read(position, task))

    keys = [record.order_key for record in found]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    late = [record for record in found if record.order_key > copy.floor]
    assert 0 < len(late) < len(found)
    assert {"insert", "update", "delete"} <= {record.op for record in late}
    assert any(record.link_id and not record.after_complete for record in found if record.op == "insert")
    moving: dict[str, dict[str, Any]] = {}
    for record in late:
        apply(rows, record, moving)
    assert moving == {}
    with database.source.copy(task, 1, {}, 1) as last:
        assert rows == rows_of(database, last)
