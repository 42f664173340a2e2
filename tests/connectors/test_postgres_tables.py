"""What tables send of a change: identity, large values, changing schemas, partitions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.postgres import copy as copying
from airflow_cdc_provider.connectors.sources.postgres.splits import split_of, under_snapshot
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Columns
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.conftest import Database, records

LARGE = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) n)"


def images(record: ChangeRecord) -> tuple[str, Any, Any]:
    return record.op, json.loads(record.before or "null"), json.loads(record.after or "null")


def emitted_schemas(items: list[StreamItem]) -> list[TableSchema]:
    """The schemas of the schema records."""
    return [
        from_plain(TableSchema, json.loads(item.after or ""))
        for item in items
        if isinstance(item, ChangeRecord) and item.op == "schema"
    ]


def test_an_unchanged_toast_value_is_absent_and_not_null(database: Database) -> None:
    database.sql("CREATE TABLE doc (id int PRIMARY KEY, n int, body text)")
    database.publish("doc")
    start = database.source.open_stream(["public.doc"])
    database.sql(f"INSERT INTO doc VALUES (1, 1, {LARGE})", "UPDATE doc SET n = 2", "UPDATE doc SET body = NULL")
    insert, untouched, nulled = records(database.read(start, database.task("public.doc")))
    assert len(json.loads(insert.after or "")["body"]) == 9600
    assert images(untouched) == ("update", None, {"id": 1, "n": 2}) and not untouched.after_complete
    assert images(nulled) == ("update", None, {"id": 1, "n": 2, "body": None}) and nulled.after_complete


def test_a_full_identity_contains_unchanged_toast_values(database: Database) -> None:
    database.sql("CREATE TABLE doc (id int PRIMARY KEY, n int, body text)", "ALTER TABLE doc REPLICA IDENTITY FULL")
    database.publish("doc")
    start = database.source.open_stream(["public.doc"])
    database.sql(f"INSERT INTO doc VALUES (1, 1, {LARGE})", "UPDATE doc SET n = 2", "DELETE FROM doc")
    insert, update, delete = records(database.read(start, database.task("public.doc")))
    assert update.after_complete and update.before_complete and delete.before_complete
    assert json.loads(update.after or "")["body"] == json.loads(insert.after or "")["body"]
    assert json.loads(update.before or "")["n"] == 1
    assert delete.before == update.after


def test_a_moved_row_keeps_its_unchanged_toast_value_unknown(database: Database) -> None:
    database.sql("CREATE TABLE doc (id int PRIMARY KEY, n int, body text)")
    database.publish("doc")
    start = database.source.open_stream(["public.doc"])
    database.sql(f"INSERT INTO doc VALUES (1, 1, {LARGE})", "UPDATE doc SET id = 2")
    _, departed, arrived = records(database.read(start, database.task("public.doc")))
    assert departed.key_before == "[1]" and arrived.key == "[2]"
    assert images(arrived) == ("insert", None, {"id": 2, "n": 1}) and not arrived.after_complete


def test_a_large_key_is_known_although_it_did_not_change(database: Database) -> None:
    database.sql(
        "CREATE TABLE doc (a text, b text, n int, PRIMARY KEY (b))", "ALTER TABLE doc ALTER b SET STORAGE EXTERNAL"
    )
    database.publish("doc")
    start = database.source.open_stream(["public.doc"])
    database.sql("INSERT INTO doc VALUES ('x', repeat('k', 2500), 1)", "UPDATE doc SET n = 2")
    _, update = records(database.read(start, database.task("public.doc")))
    assert update.key == update.key_before == json.dumps(["k" * 2500])
    assert update.after_complete


def test_a_table_without_key_has_both_images_complete(database: Database) -> None:
    database.sql("CREATE TABLE view (at int, page text)", "ALTER TABLE view REPLICA IDENTITY FULL")
    database.publish("view")
    start = database.source.open_stream(["public.view"])
    database.sql("INSERT INTO view VALUES (1, NULL), (1, NULL)", "UPDATE view SET at = 2", "DELETE FROM view")
    found = records(database.read(start, database.task("public.view")))
    assert [record.op for record in found] == ["insert"] * 2 + ["update"] * 2 + ["delete"] * 2
    assert {(record.key, record.key_before) for record in found} == {(None, None)}
    assert images(found[2]) == ("update", {"at": 1, "page": None}, {"at": 2, "page": None})
    assert found[2].before_complete and found[2].after_complete and found[4].before_complete


def test_the_identity_may_be_a_unique_index(database: Database) -> None:
    database.sql(
        "CREATE TABLE item (a int NOT NULL, b text NOT NULL, n int)",
        "CREATE UNIQUE INDEX item_ba ON item (b, a)",
        "ALTER TABLE item REPLICA IDENTITY USING INDEX item_ba",
    )
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql(
        "INSERT INTO item VALUES (1, 'x', 0)", "UPDATE item SET n = 1", "UPDATE item SET a = 2", "DELETE FROM item"
    )
    found = records(database.read(start, database.task("public.item")))
    keys = [(record.op, record.key_before, record.key) for record in found]
    assert keys == [
        ("insert", None, '["x",1]'),
        ("update", '["x",1]', '["x",1]'),
        ("delete", '["x",1]', None),
        ("insert", None, '["x",2]'),
        ("delete", '["x",2]', None),
    ]


def test_a_given_key_identifies_rows_where_the_identity_is_full(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, code text)", "ALTER TABLE item REPLICA IDENTITY FULL")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql("INSERT INTO item VALUES (1, 'a')", "UPDATE item SET id = 2", "UPDATE item SET code = 'b'")
    found = records(database.read(start, database.task("public.item", key=["code"])))
    assert [(record.op, record.key_before, record.key) for record in found] == [
        ("insert", None, '["a"]'),
        ("update", '["a"]', '["a"]'),
        ("delete", '["a"]', None),
        ("insert", None, '["b"]'),
    ]


def test_an_identity_without_the_key_is_a_changed_key(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, code text NOT NULL UNIQUE)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    held = database.task("public.item").schema
    database.sql("ALTER TABLE item REPLICA IDENTITY USING INDEX item_code_key", "INSERT INTO item VALUES (1, 'a')")
    items = database.read(start, database.task("public.item", held=held))
    assert [schema.key for schema in emitted_schemas(items)] == [("code",)]


def test_excluded_columns_never_leave_the_source(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, note text, n int)", "ALTER TABLE item REPLICA IDENTITY FULL")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql(
        "INSERT INTO item VALUES (1, 'confidential', 1)", "UPDATE item SET n = 2", "ALTER TABLE item ADD more int"
    )
    database.sql("UPDATE item SET more = 5")
    found = records(database.read(start, database.task("public.item", columns=Columns(exclude=("note",)))))
    assert [images(record) for record in found] == [
        ("insert", None, {"id": 1, "n": 1}),
        ("update", {"id": 1, "n": 1}, {"id": 1, "n": 2}),
        ("update", {"id": 1, "n": 2, "more": None}, {"id": 1, "n": 2, "more": 5}),
    ]
    found = records(database.read(start, database.task("public.item", columns=Columns(include=("id", "n")))))
    assert images(found[-1]) == ("update", {"id": 1, "n": 2}, {"id": 1, "n": 2})


def test_a_schema_is_emitted_when_it_differs_from_the_target(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, n int)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    held = database.task("public.item").schema
    database.sql(
        "INSERT INTO item VALUES (1, 1)",
        "ALTER TABLE item ADD COLUMN t text DEFAULT 'old', ADD COLUMN u text",
        "INSERT INTO item VALUES (2, 2, 'new')",
        "ALTER TABLE item DROP COLUMN n",
        "INSERT INTO item VALUES (3, 'new')",
    )
    items = database.read(start, database.task("public.item", held=held))
    assert [schema.names for schema in emitted_schemas(items)] == [("id", "n", "t", "u"), ("id", "t", "u")]
    assert [json.loads(record.after or "") for record in records(items)] == [
        {"id": 1, "n": 1},
        {"id": 2, "n": 2, "t": "new", "u": None},
        {"id": 3, "t": "new", "u": None},
    ]
    schemas = {item.schema_id: item for item in items if isinstance(item, TableSchema)}
    assert [schemas[record.schema_id].names for record in records(items)] == [
        ("id", "n"),
        ("id", "n", "t", "u"),
        ("id", "t", "u"),
    ]
    ids = [item.schema_id for item in items if isinstance(item, ChangeRecord | TableSchema)]
    assert all(schema_id in ids for schema_id in schemas)


def test_an_unchanged_schema_is_not_emitted_and_has_the_id_of_the_task(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, n int DEFAULT 5 NOT NULL)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    task = database.task("public.item", held=database.task("public.item").schema)
    database.sql("INSERT INTO item VALUES (1)")
    items = database.read(start, task)
    assert emitted_schemas(items) == []
    assert records(items)[0].schema_id == task.schema.schema_id


@pytest.mark.parametrize(
    ("added", "initial", "known"),
    [
        ("t text", None, True),
        ("t text DEFAULT 'it''s \"é\"'", '"it\'s \\"é\\""', True),
        ("t int DEFAULT 5 NOT NULL", "5", True),
        ("t numeric(5,2) DEFAULT 1", '"1.00"', True),
        ("t timestamptz DEFAULT '2024-01-01 00:00:00+02'", '"2023-12-31T22:00:00Z"', True),
        ("t text[] DEFAULT '{a,\"b,c\"}'", '"{a,\\"b,c\\"}"', True),
        ("t bytea DEFAULT '\\x00ff'", '"AP8="', True),
        ("t box DEFAULT '(3,4),(1,2)'", '"(3,4),(1,2)"', True),
        ("t box[] DEFAULT '{(3,4),(1,2);(1,1),(0,0)}'", '"{(3,4),(1,2);(1,1),(0,0)}"', True),
        ("t frame DEFAULT '(3,4),(1,2)'", '"(3,4),(1,2)"', True),
        ("t text DEFAULT 'a,\"b\\'", '"a,\\"b\\\\"', True),
        ("t text DEFAULT 'NULL'", '"NULL"', True),
        ("t text DEFAULT ''", '""', True),
        ("t float8 DEFAULT random()", None, False),
        ("t uuid DEFAULT gen_random_uuid()", None, False),
        pytest.param("t int GENERATED ALWAYS AS IDENTITY", None, False, marks=pytest.mark.since(17)),
        ("t serial", None, False),
    ],
)
@pytest.mark.parametrize("partitioned", [False, True], ids=["ordinary", "partitioned"])
def test_the_value_of_an_added_column_in_older_rows(
    database: Database, added: str, initial: str | None, known: bool, partitioned: bool
) -> None:
    database.sql("CREATE DOMAIN frame AS box")
    database.sql(f"CREATE TABLE item (id int PRIMARY KEY){' PARTITION BY HASH (id)' if partitioned else ''}")
    if partitioned:
        database.sql(
            *(f"CREATE TABLE item_{n} PARTITION OF item FOR VALUES WITH (modulus 2, remainder {n})" for n in (0, 1))
        )
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    held = database.task("public.item").schema
    database.sql(
        "INSERT INTO item VALUES (1), (2), (3)", f"ALTER TABLE item ADD COLUMN {added}", "INSERT INTO item VALUES (9)"
    )
    items = database.read(start, database.task("public.item", held=held))
    (schema,) = emitted_schemas(items)
    (record,) = [item for item in items if isinstance(item, ChangeRecord) and item.op == "schema"]
    assert schema.column("t").initial == initial
    assert record.warnings == (() if known else ("initial_unknown",))


@pytest.mark.since(18)
def test_generated_columns_are_not_copied(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql("INSERT INTO item VALUES (1)", "ALTER PUBLICATION cdc SET (publish_generated_columns = stored)")
    database.sql("INSERT INTO item VALUES (2)")
    task = database.task("public.item")
    assert task.schema.names == ("id",)
    assert [record.after for record in records(database.read(start, task))] == ['{"id":1}', '{"id":2}']


def test_a_partitioned_table_is_one_table(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.sql(
        "CREATE TABLE sale (id int, region text, n int, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
        "CREATE TABLE sale_eu PARTITION OF sale FOR VALUES IN ('eu')",
        "CREATE TABLE sale_us (n int, junk int, region text NOT NULL, id int NOT NULL)",
        "ALTER TABLE sale_us DROP COLUMN junk",
        "ALTER TABLE sale ATTACH PARTITION sale_us FOR VALUES IN ('us')",
    )
    database.publish("sale")
    assert [schema.table for schema in database.source.tables()] == ["public.sale"]
    start = database.source.open_stream(["public.sale"])
    database.sql(
        "INSERT INTO sale SELECT n, CASE WHEN n % 3 = 0 THEN 'eu' ELSE 'us' END, n FROM generate_series(1, 3000) n",
        "UPDATE sale SET n = 0 WHERE id = 1",
        "UPDATE sale SET region = 'eu' WHERE id = 1",
    )
    task = database.task("public.sale")
    found = records(database.read(start, task))
    assert {record.table for record in found} == {"public.sale"} and len(found) == 3003
    assert [(record.op, record.key_before or record.key) for record in found[-2:]] == [
        ("delete", '[1,"us"]'),
        ("insert", '[1,"eu"]'),
    ]
    monkeypatch.setattr(copying, "ONE_PART_BYTES", 0)
    with database.source.copy(task, 1, {}, 5) as copy:
        rows = [row["id"] for row in database.copied(copy)]
        split = split_of(copy.read.splits[1])
        plan = database.connection.execute(
            f"EXPLAIN SELECT id FROM ({split.rows}) AS rows WHERE {split.within}".encode()
        ).fetchall()
    assert sorted(rows) == list(range(1, 3001)) and len(copy.read.splits) == 5
    assert sum("Tid Range Scan" in line for (line,) in plan) == 2
    before = database.now()
    database.sql("TRUNCATE sale")
    assert [(record.table, record.op) for record in records(database.read(before, task))] == [
        ("public.sale", "truncate")
    ]


def test_a_table_joins_the_stream_later(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE late (id int PRIMARY KEY)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql("INSERT INTO late VALUES (1)", "INSERT INTO item VALUES (1)")
    task = database.task("public.late")
    with database.source.copy(task, 1, {}, 1) as copy:
        database.sql("INSERT INTO late VALUES (2)", "INSERT INTO item VALUES (2)")
        assert [split_of(one).within for one in copy.read.splits] == ["TRUE"]
    items = database.read(start, database.task("public.item"), task)
    late = [r.key for r in records(items) if r.table == "public.late" and r.order_key > copy.floor]
    assert late == ["[2]"]
    assert [r.key for r in records(items) if r.table == "public.item"] == ["[1]", "[2]"]


def test_the_rows_of_a_child_table_are_its_own(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE child () INHERITS (item)")
    database.publish("ONLY item")
    database.source.open_stream(["public.item"])
    database.sql("INSERT INTO item VALUES (1)", "INSERT INTO child VALUES (2)")
    with database.source.copy(database.task("public.item"), 1, {}, 1) as copy:
        assert database.copied(copy) == [{"id": 1}]


@pytest.mark.parametrize("partitioned", [False, True], ids=["ordinary", "partitioned"])
@pytest.mark.parametrize("statement", ["TRUNCATE item", "ALTER TABLE item ALTER n TYPE bigint"])
def test_a_table_rewritten_between_two_splits_of_its_copy_fails_the_copy(
    database: Database, statement: str, partitioned: bool
) -> None:
    database.sql(f"CREATE TABLE item (id int PRIMARY KEY, n int){' PARTITION BY HASH (id)' if partitioned else ''}")
    if partitioned:
        database.sql("CREATE TABLE item_0 PARTITION OF item FOR VALUES WITH (modulus 1, remainder 0)")
    database.sql("INSERT INTO item VALUES (1, 1)", "SET lock_timeout TO '200ms'")
    database.publish("item")
    with database.source.copy(database.task("public.item"), 1, {}, 1) as copy:
        viewed = split_of(copy.read.splits[0]).viewed
        with under_snapshot(database.source.client, viewed), pytest.raises(psycopg.errors.LockNotAvailable):
            database.sql(statement)
        assert [row["id"] for row in database.copied(copy)] == [1]
        database.sql(statement)
        with pytest.raises(SourceUnavailable, match=r"CPY008.*truncated or rewritten"):
            database.copied(copy)


def test_a_copy_leaves_nothing_behind(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)")
    database.publish("item")
    with database.source.copy(database.task("public.item"), 1, {}, 1):
        assert database.ask("SELECT count(*) FROM pg_replication_slots WHERE temporary") == 1
    while database.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'cdc:%copy%'"):
        pass
    assert database.ask("SELECT count(*) FROM pg_replication_slots WHERE temporary") == 0


def test_a_table_in_the_order_of_its_key_is_read_by_the_index_of_its_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison reads blocks."""
    database.sql("CREATE TABLE big (id int PRIMARY KEY, mixed int)")
    database.sql("INSERT INTO big SELECT n, n * 7919 % 30011 FROM generate_series(1, 30000) n", "ANALYZE big")
    database.publish("big")
    monkeypatch.setattr(copying, "ONE_PART_BYTES", 0)
    task = database.task("public.big")
    with database.source.copy(task, 1, {}, 4) as copy:
        splits = [split_of(split) for split in copy.read.splits]
        assert copy.read.lasting and len(splits) == 4 and all(split.indexed for split in splits)
        database.sql("UPDATE big SET mixed = 0 WHERE id < 99", "DELETE FROM big WHERE id = 7")
        with database.source.copy(task, 1, {}, 4) as later:
            read = database.source.under_view(replace(copy.read, splits=copy.read.splits[:1]), later.read)
            rows = database.copied(replace(later, read=read))
        assert len(database.copied(copy)) == 30000
    assert 7 not in {row["id"] for row in rows} and 7000 < len(rows) < 8000
    assert {row["mixed"] for row in rows if row["id"] < 99} == {0}
    with database.source.snapshot(task, 1, {}, 4) as snapshot:
        assert not snapshot.copy.read.lasting and "_cdc_ctid" in split_of(snapshot.copy.read.splits[0]).within


def test_a_copy_reports_varying_columns_and_the_order_of_its_rows(database: Database) -> None:
    database.sql(
        "CREATE TABLE big (id int PRIMARY KEY, mixed int, kind text)",
        "INSERT INTO big SELECT n, n * 7919 % 30011, 'k' || n % 3 FROM generate_series(1, 30000) n",
        "ANALYZE big",
    )
    database.publish("big")
    with database.source.copy(database.task("public.big"), 1, {}, 1) as copy:
        assert (sorted(copy.high_cardinality), copy.clustered_by) == (["id", "mixed"], ("id",))


def test_the_rows_of_a_table_without_statistics_are_estimated_from_its_size(database: Database) -> None:
    database.sql("CREATE TABLE big (id int PRIMARY KEY) WITH (autovacuum_enabled = off)")
    database.publish("big")
    with database.source.copy(database.task("public.big"), 1, {}, 1) as empty:
        assert empty.rows == 0
    database.sql("INSERT INTO big SELECT generate_series(1, 30000)")
    with database.source.copy(database.task("public.big"), 1, {}, 1) as copy:
        assert 15_000 < copy.rows < 60_000
