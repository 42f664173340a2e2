"""Old images of partitions whose replica identity is not that of their table. Changes have the letter of the table."""

from __future__ import annotations

import json

import pytest

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.postgres.dead_letters import reread
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.conftest import Database, records

TABLE = "public.t"
EUROPE = [Condition("r", Comparison.EQUAL, "eu")]
TWO_LEAVES = (
    "CREATE TABLE t (id int PRIMARY KEY, r text, code text NOT NULL DEFAULT 'c') PARTITION BY RANGE (id)",
    "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100)",
    "CREATE TABLE top PARTITION OF t FOR VALUES FROM (100) TO (200)",
)
FULL = ("ALTER TABLE t REPLICA IDENTITY FULL", "ALTER TABLE low REPLICA IDENTITY FULL")


def brief(record: ChangeRecord) -> tuple[str, str | None, str | None, bool]:
    return record.op, record.key_before, record.before, record.before_complete


def schemas(items: list[StreamItem]) -> list[TableSchema]:
    changes = (item for item in items if isinstance(item, ChangeRecord) and item.op == "schema")
    return [from_plain(TableSchema, json.loads(item.after or "")) for item in changes]


def test_a_filter_leaves_no_delete_of_a_partition_out_that_logs_only_its_key(database: Database) -> None:
    database.sql(*TWO_LEAVES, *FULL)
    database.publish("t")
    start = database.source.open_stream([TABLE])
    database.sql(
        "INSERT INTO t VALUES (1, 'eu'), (2, 'us'), (150, 'eu'), (151, 'eu')",
        "UPDATE t SET r = 'us' WHERE id = 150",
        "DELETE FROM t",
    )
    found = records(database.read(start, database.task(TABLE, where=EUROPE)))
    assert [record.key for record in found[:3]] == ["[1]", "[150]", "[151]"]
    assert [brief(record) for record in found[3:]] == [
        ("delete", "[150]", '{"id":150}', False),
        ("delete", "[1]", '{"id":1,"r":"eu","code":"c"}', True),
        ("delete", "[151]", '{"id":151}', False),
        ("delete", "[150]", '{"id":150}', False),
    ]


@pytest.mark.parametrize("rows", [1, 50], ids=["few", "many"])
def test_values_that_a_partition_does_not_log_are_unknown_and_not_null(database: Database, rows: int) -> None:
    database.sql(*TWO_LEAVES, *FULL)
    database.publish("t")
    start = database.source.open_stream([TABLE])
    database.sql(f"INSERT INTO t SELECT 100 + n FROM generate_series(1, {rows}) n", "DELETE FROM t")
    found = records(database.read(start, database.task(TABLE)))[rows:]
    assert [brief(record) for record in found] == [
        ("delete", f"[{100 + n}]", f'{{"id":{100 + n}}}', False) for n in range(1, rows + 1)
    ]


def test_images_are_whole_while_the_partition_logs_whole_rows(database: Database) -> None:
    """Also those of rows that have nothing but a key."""
    database.sql(*TWO_LEAVES, *FULL, "ALTER TABLE top REPLICA IDENTITY FULL", "ALTER TABLE t ALTER code DROP NOT NULL")
    database.publish("t")
    start = database.source.open_stream([TABLE])
    database.sql(
        "INSERT INTO t SELECT n, NULL, NULL FROM generate_series(101, 103) n",
        "DELETE FROM t WHERE id = 101",
        "ALTER TABLE top REPLICA IDENTITY DEFAULT",
        "DELETE FROM t WHERE id = 102",
        "ALTER TABLE top REPLICA IDENTITY FULL",
        "DELETE FROM t WHERE id = 103",
    )
    found = records(database.read(start, database.task(TABLE)))[3:]
    assert [record.before_complete for record in found] == [True, False, True]


def test_a_partition_that_exists_no_more_had_its_own_identity(database: Database) -> None:
    database.sql(*TWO_LEAVES, *FULL)
    database.publish("t")
    start = database.source.open_stream([TABLE])
    database.sql("INSERT INTO t VALUES (101, 'eu')", "DELETE FROM t", "DROP TABLE top")
    found = records(database.read(start, database.task(TABLE, where=EUROPE)))
    assert [record.op for record in found] == ["insert", "delete"]


@pytest.mark.parametrize(
    ("root", "leaf", "key", "logged"),
    [
        ("FULL", "DEFAULT", ("code",), ("id",)),
        ("USING INDEX t_id_code_idx", "DEFAULT", ("id", "code"), ("id",)),
        ("DEFAULT", "USING INDEX other", ("id",), ()),
    ],
)
def test_a_key_that_a_partition_does_not_log_is_a_changed_key(
    database: Database, root: str, leaf: str, key: tuple[str, ...], logged: tuple[str, ...]
) -> None:
    database.sql(*TWO_LEAVES, "CREATE UNIQUE INDEX ON t (id, code)", "CREATE UNIQUE INDEX other ON top (code)")
    database.sql(f"ALTER TABLE t REPLICA IDENTITY {root}", f"ALTER TABLE top REPLICA IDENTITY {leaf}")
    database.publish("t")
    start = database.source.open_stream([TABLE])
    held = database.task(TABLE, key=key).schema
    database.sql("INSERT INTO t VALUES (101)", "DELETE FROM t")
    items = database.read(start, database.task(TABLE, held, key=key))
    assert [schema.key for schema in schemas(items)] == [logged]
    assert [record.key_before for record in records(items)] == [None, "[101]" if logged else None]


def test_a_change_that_was_unreadable_is_read_again_with_what_its_partition_logged(database: Database) -> None:
    """The type of the key has a value that the copy cannot have."""
    database.sql(
        "CREATE TABLE t (at date PRIMARY KEY, r text) PARTITION BY RANGE (at)",
        "CREATE TABLE top PARTITION OF t DEFAULT",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    database.publish("t")
    start = database.source.open_stream([TABLE])
    database.sql("INSERT INTO t VALUES ('infinity', 'eu')", "DELETE FROM t")
    task = database.task(TABLE)
    found = records(database.read(start, task))[-1]
    assert found.op == "unreadable"
    text = TableSchema(TABLE, tuple(column for column in task.schema.columns if column.name == "r"), ())
    (again,) = reread(found, task, text)
    assert (again.op, again.before, again.before_complete) == ("delete", "{}", False)
