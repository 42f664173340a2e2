"""Windows of the binlog: their records, their ends, and their holes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pymysql
import pytest

from airflow_cdc_provider.connectors.source import Boundary, Ignored
from airflow_cdc_provider.connectors.sources.mysql.options import read_options
from airflow_cdc_provider.connectors.sources.mysql.positions import binlog_position
from airflow_cdc_provider.core.errors import CheckFailed, PositionLost, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes, records
from tests.mariadb import IS_MYSQL, WITHOUT_NAMES, embedded, mariadb_only
from tests.waiting import until

pytestmark = pytest.mark.server

RESET = ["RESET BINARY LOGS AND GTIDS"] if IS_MYSQL else ["RESET MASTER", "SET GLOBAL gtid_domain_id = 0"]


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, word varchar(20), n int DEFAULT 5)")
    shop.position = shop.source.open_stream([])
    return shop


def ops(items: Any) -> list[tuple[str, str | None]]:
    return [(str(one.op), one.key or one.key_before) for one in records(items)]


def image(one: ChangeRecord) -> dict[str, Any]:
    return dict(json.loads(one.after or "{}"))


def test_a_changed_key_is_a_departing_row_and_an_arriving_row(shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, 'a', 1)", "UPDATE t SET id = 2, word = 'b' WHERE id = 1")
    _, delete, insert = records(shop.window(shop.task("t")))
    assert (delete.op, delete.key_before, insert.op, insert.key) == ("delete", "[1]", "insert", "[2]")
    assert delete.link_id == insert.link_id and delete.order_key < insert.order_key
    assert (delete.phase, insert.phase) == (0, 1)
    assert delete.before_complete and insert.after_complete and image(insert) == {"id": 2, "word": "b", "n": 1}


def test_a_window_ends_after_a_whole_transaction_and_never_behind_its_limit(shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, 'a', 1)")
    limit = shop.status("t").limit
    shop.sql("BEGIN", "INSERT INTO t VALUES (2, 'b', 2)", "INSERT INTO t VALUES (3, 'c', 3)", "COMMIT")
    first = shop.window(shop.task("t"), limit=limit)
    assert ops(first) == [("insert", "[1]")] and binlog_position(shop.position) == binlog_position(limit)
    second = shop.window(shop.task("t"))
    assert ops(second) == [("insert", "[2]"), ("insert", "[3]")]
    assert isinstance(second[-1], Boundary) and sum(isinstance(item, Boundary) for item in second) == 1


def test_rolled_back_changes_are_not_emitted(shop: Shop) -> None:
    shop.sql("BEGIN", "INSERT INTO t VALUES (1, 'a', 1)", "ROLLBACK")
    shop.sql("BEGIN", "INSERT INTO t VALUES (2, 'b', 1)", "SAVEPOINT s", "DELETE FROM t", "ROLLBACK TO s", "COMMIT")
    items = shop.window(shop.task("t"))
    assert ops(items) == [("insert", "[2]")] and not holes(items)


def test_rows_of_other_tables_are_counted_and_skipped(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO other VALUES (1)", "INSERT INTO t VALUES (1, '', 1)"
    )
    items = shop.window(shop.task("t"))
    assert ops(items) == [("insert", "[1]")] and sum(item.count for item in items if isinstance(item, Ignored)) == 1


def test_only_selected_columns_and_rows_are_emitted(shop: Shop) -> None:
    task = shop.task("t", columns=Columns(exclude=("word",)), where=[Condition("n", Comparison.GREATER, 3)])
    shop.sql(
        "INSERT INTO t VALUES (1, 'secret', 1), (2, 'secret', 4)",
        "UPDATE t SET n = 9 WHERE id = 1",
        "UPDATE t SET n = 0 WHERE id = 2",
        "DELETE FROM t WHERE id = 2",
    )
    items = shop.window(task)
    assert ops(items) == [("insert", "[2]"), ("insert", "[1]"), ("delete", "[2]")]
    assert "secret" not in str(items)
    assert list(shop.copied(task)[1].values()) == [{"id": 1, "n": 9}]


def test_a_truncate_is_emitted_in_order(shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, '', 1)", "TRUNCATE TABLE t", "INSERT INTO t VALUES (2, '', 1)")
    shop.sql(f"/* why */ TRUNCATE `{shop.name}`.`t`")
    items = shop.window(shop.task("t"))
    assert ops(items) == [("insert", "[1]"), ("truncate", None), ("insert", "[2]"), ("truncate", None)]
    keys = [one.order_key for one in records(items)]
    assert keys == sorted(keys)


def test_an_added_column_is_emitted_before_its_first_row(shop: Shop) -> None:
    held = shop.task("t").schema
    shop.sql(
        "INSERT INTO t VALUES (1, 'a', 1)",
        "ALTER TABLE t ADD COLUMN late bigint",
        "INSERT INTO t VALUES (2, 'b', 2, 3)",
    )
    task = replace(shop.task("t", held), schema=held)
    items = shop.window(task)
    schemas = [item for item in items if isinstance(item, TableSchema)]
    assert [schema.names for schema in schemas] == [("id", "word", "n"), ("id", "word", "n", "late")]
    (change,) = [item for item in items if isinstance(item, ChangeRecord) and item.op == "schema"]
    one, two = records(items)
    assert one.order_key < change.order_key < two.order_key and not change.warnings
    assert (one.schema_id, two.schema_id) == tuple(schema.schema_id for schema in schemas)
    assert image(two)["late"] == 3 and not holes(items)


def test_an_added_column_with_a_default_is_unknown_in_older_rows(shop: Shop) -> None:
    held = shop.task("t").schema
    shop.sql("ALTER TABLE t ADD COLUMN late int NOT NULL DEFAULT 7", "INSERT INTO t (id) VALUES (1)")
    items = shop.window(shop.task("t", held))
    assert [item.warnings for item in items if isinstance(item, ChangeRecord)] == [("initial_unknown",), ()]


def test_rows_from_before_a_change_of_type_are_read_with_the_old_type(shop: Shop) -> None:
    shop.sql(
        "INSERT INTO t VALUES (1, 'a', -1)",
        "ALTER TABLE t DROP COLUMN word, MODIFY n bigint",
        "INSERT INTO t VALUES (2, 2)",
    )
    one, two = records(shop.window(shop.task("t")))
    assert image(one) == {"id": 1, "word": "a", "n": -1} and image(two) == {"id": 2, "n": 2}


def test_values_that_an_alter_may_have_changed_are_a_hole(shop: Shop) -> None:
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, at datetime(6), kind enum('a','b'), word varchar(9))")
    held = shop.task("c").schema
    shop.window(shop.task("c"))
    shop.sql("ALTER TABLE c MODIFY kind enum('a','b','c'), MODIFY word varchar(20)", "INSERT INTO c (id) VALUES (1)")
    assert not holes(shop.window(shop.task("c", held)))
    shop.sql("ALTER TABLE c MODIFY at datetime", "INSERT INTO c (id) VALUES (2)")
    (table, altered), (_, changed) = holes(shop.window(shop.task("c", held)))
    assert table == shop.table("c") and altered == "column at changed from datetime(6) to datetime"
    assert changed.endswith(": at")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {}",
        "RENAME TABLE {} TO {}_old",
        "ALTER TABLE {} RENAME TO {}_old",
        pytest.param("CREATE OR REPLACE TABLE {} (id int PRIMARY KEY)", marks=mariadb_only),
        "ALTER TABLE {} DROP PARTITION p0",
    ],
)
def test_a_table_that_is_replaced_or_loses_rows_without_events_is_a_hole(shop: Shop, statement: str) -> None:
    shop.sql("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (5), "
             "PARTITION p1 VALUES LESS THAN (9))")  # fmt: skip
    tasks = [shop.task("p"), shop.task("t")]
    shop.window(*tasks)
    shop.sql(statement.replace("{}", "p"), "INSERT INTO t VALUES (1, '', 1)")
    items = shop.window(*tasks)
    assert [table for table, _ in holes(items)] == [shop.table("p")] and ops(items) == [("insert", "[1]")]


def test_a_dropped_database_drops_its_tables(shop: Shop) -> None:
    task = shop.task("t")
    shop.sql(f"DROP DATABASE {shop.name}")
    assert holes(shop.window(task)) == [
        (task.table, "the table was dropped, replaced or renamed, or lost rows without a log")
    ]


def test_other_definitions_are_accepted(shop: Shop) -> None:
    task = shop.task("t")
    shop.sql(
        "CREATE INDEX i ON t (word)",
        "ALTER TABLE t ADD INDEX j (n), COMMENT 'DROP PARTITION p'",
        "CREATE TABLE IF NOT EXISTS t (x int)",
        "CREATE TEMPORARY TABLE t2 (id int)",
        "DROP TEMPORARY TABLE t2",
        "ANALYZE TABLE t",
        "CREATE VIEW v AS SELECT * FROM t",
        "DROP VIEW v",
    )
    items = shop.window(task)
    assert not holes(items) and not records(items)


def test_a_prepared_transaction_is_a_hole(shop: Shop) -> None:
    shop.sql("XA START 'x'", "INSERT INTO t VALUES (1, '', 1)", "XA END 'x'", "XA PREPARE 'x'")
    assert [table for table, _ in holes(shop.window(shop.task("t")))] == [shop.table("t")]
    shop.sql("XA ROLLBACK 'x'", "INSERT INTO t VALUES (2, '', 1)")
    items = shop.window(shop.task("t"))
    assert ops(items) == [("insert", "[2]")] and not holes(items)


def test_windows_continue_over_files_and_a_restart(mariadb: EmbeddedMariaDB, shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, '', 1)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, '', 1)")
    task = shop.task("t")
    assert ops(shop.window(task)) == [("insert", "[1]"), ("insert", "[2]")]
    mariadb.stop()
    mariadb.start()
    shop.connection = shop.connect()
    shop.sql(f"USE {shop.name}", "INSERT INTO t VALUES (3, '', 1)")
    assert ops(shop.window(task)) == [("insert", "[3]")]
    assert shop.status("t").has_changes is False


def test_only_changes_of_copied_tables_count_and_an_idle_position_advances(shop: Shop) -> None:
    shop.sql("CREATE TABLE other (id int PRIMARY KEY, filler longtext)")
    assert not shop.status("t").has_changes
    shop.sql("INSERT INTO other VALUES (1, 'x')")
    quiet = shop.status("t")
    assert (quiet.has_changes, quiet.idle) == (False, None), "not far enough for a window of its own"
    shop.sql("FLUSH BINARY LOGS")
    moved = shop.status("t")
    assert not moved.has_changes and moved.idle == moved.limit
    shop.position = dict(moved.limit)
    shop.sql("INSERT INTO t VALUES (1, '', 1)")
    assert shop.status("t").has_changes
    assert ops(shop.window(shop.task("t"))) == [("insert", "[1]")]


def test_a_purged_file_is_a_lost_position(shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, '', 1)", "FLUSH BINARY LOGS")
    last = shop.ask("SHOW BINARY LOGS")[-1][0]

    def purged() -> bool:
        """Not before the engine has written its own."""
        shop.sql(f"PURGE BINARY LOGS TO '{last}'")
        return len(shop.ask("SHOW BINARY LOGS")) == 1

    until(purged, "an older binlog purged")
    with pytest.raises(PositionLost, match="SRC013"):
        shop.status("t")
    with pytest.raises(PositionLost, match="SRC013"):
        shop.window(shop.task("t"), limit={"file": last, "pos": "400", "gtid": ""})


def test_a_reset_binlog_is_a_lost_position_although_its_files_have_the_same_names() -> None:
    with embedded() as server:
        shop = Shop(server)
        shop.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        task = shop.task("t")
        shop.window(task)
        shop.sql(*RESET)
        with pytest.raises(PositionLost, match="before our position"):
            shop.status("t")
        shop.sql(*[f"INSERT INTO t VALUES ({n})" for n in range(10, 40)])
        with pytest.raises(PositionLost, match="SRC013"):
            shop.window(task)


@mariadb_only
def test_a_reset_binlog_is_detected_although_a_transaction_ends_at_the_same_position() -> None:
    with embedded() as server:
        shop = Shop(server)
        shop.sql("CREATE TABLE t (id int PRIMARY KEY, word varchar(2000))")
        task = shop.task("t")

        def insert(number: int, length: int) -> int:
            before = binlog_position(shop.source.open_stream([])).pos
            if not IS_MYSQL:
                shop.sql("SET binlog_annotate_row_events = OFF")
            shop.sql(f"INSERT INTO t VALUES ({number}, '{'x' * length}')")
            return binlog_position(shop.source.open_stream([])).pos - before

        frame = insert(1, 300) - 300
        shop.sql(*RESET)
        insert(2, 300 + frame + 300)
        shop.position = dict(shop.source.open_stream([]))
        shop.sql(*RESET)
        insert(3, 300)
        insert(4, 300)
        again = shop.source.open_stream([])
        assert binlog_position(again) == binlog_position(shop.position), "the positions are equal"
        insert(5, 300)
        with pytest.raises(PositionLost, match="the binlog was reset"):
            shop.status("t")
        with pytest.raises(PositionLost, match="the binlog was reset"):
            shop.window(task, limit=shop.source.open_stream([]))


def test_unreadable_rows_are_kept_and_decoded_again(shop: Shop) -> None:
    shop.sql("CREATE TABLE a (id int PRIMARY KEY, old varchar(9) CHARACTER SET ascii, word varchar(9))")
    shop.sql("INSERT INTO a VALUES (1, X'80', 'ü')", "UPDATE a SET id = 2, word = 'b'", "DELETE FROM a")
    task = shop.task("a")
    put, departed, moved, deleted = records(shop.window(task))
    assert (put.op, put.key, departed.op, departed.key_before) == ("unreadable", "[1]", "delete", "[1]")
    assert (moved.op, moved.key, moved.link_id) == ("unreadable", "[2]", departed.link_id)
    assert (deleted.op, deleted.key_before, deleted.before_complete) == ("delete", "[2]", False)
    assert json.loads(put.after or "")["columns"] == ["old"] and json.loads(put.after or "")["known"]["word"] == "ü"
    assert shop.source.reread(put, task, task.schema) == [put]
    without = shop.task("a", columns=Columns(exclude=("old",)))
    (read,) = shop.source.reread(put, without, without.schema)
    assert (read.op, read.key, image(read)) == ("insert", "[1]", {"id": 1, "word": "ü"})
    (arrived,) = shop.source.reread(moved, without, without.schema)
    assert (arrived.op, arrived.key, arrived.link_id) == ("insert", "[2]", departed.link_id)


def test_a_minimal_row_image_has_the_key_and_the_changed_columns() -> None:
    with embedded(binlog_row_image="MINIMAL") as server:
        shop = Shop(server)
        shop.sql("CREATE TABLE t (id int PRIMARY KEY, word varchar(20), n int)", "INSERT INTO t VALUES (1, 'a', 1)")
        shop.sql("UPDATE t SET n = NULL", "UPDATE t SET id = 2", "DELETE FROM t")
        _, changed, departed, moved, deleted = records(shop.window(shop.task("t")))
        assert (changed.op, changed.after_complete, image(changed)) == ("update", False, {"id": 1, "n": None})
        assert (departed.key_before, moved.link_id, moved.after_complete) == ("[1]", departed.link_id, False)
        assert image(moved) == {"id": 2} and deleted.key_before == "[2]"


def test_without_column_names_in_the_binlog_an_altered_table_is_a_hole_and_others_are_read() -> None:
    with embedded(binlog_row_metadata=WITHOUT_NAMES) as server:
        shop = Shop(server)
        for name in ("t", "u"):
            shop.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, a int, b int)", f"INSERT INTO {name} VALUES (1, 2, 3)")
        shop.sql("ALTER TABLE t CHANGE a x int, CHANGE b a int")
        items = shop.window(shop.task("t"), shop.task("u"))
        assert [table for table, _ in holes(items)] == [shop.table("t")]
        assert [(one.table, image(one)) for one in records(items)] == [(shop.table("u"), {"id": 1, "a": 2, "b": 3})]
        shop.sql("INSERT INTO t VALUES (2, 4, 5)")
        items = shop.window(shop.task("t"))
        assert [image(one) for one in records(items)] == [{"id": 2, "x": 4, "a": 5}] and not holes(items)


def test_a_disconnected_reader_retries_and_its_position_is_not_lost(shop: Shop) -> None:
    disconnected = "A slave with the same server_uuid/server_id as this slave has connected to the master"
    with pytest.raises(SourceUnavailable, match="CON013"), shop.source.client.translated_errors():
        raise pymysql.OperationalError(1236, disconnected)
    with pytest.raises(PositionLost, match="SRC013"), shop.source.client.translated_errors():
        raise pymysql.OperationalError(1236, "Could not find first log file name in binary log index file")


def test_reading_the_status_does_not_disconnect_a_reader(shop: Shop) -> None:
    shop.sql(*[f"INSERT INTO t VALUES ({n}, 'x', 1)" for n in range(20)])
    (split,) = shop.source.splits(shop.position, shop.status("t").limit)
    reading = shop.source.read(split, [shop.task("t")], 1)
    first = next(reading)
    assert shop.status("t").has_changes
    assert len(records([first, *reading])) == 20


def test_an_unreachable_server_can_be_retried_and_a_wrong_password_is_reported(shop: Shop) -> None:
    wrong = shop.source_as("unknown", "hush-hush")
    with pytest.raises(CheckFailed, match="CON009") as caught:
        wrong.tables()
    assert "hush-hush" not in str(caught.value) + repr(wrong.client.info)
    wrong.client.info = replace(wrong.client.info, port=1)
    with pytest.raises(SourceUnavailable, match="CON010"):
        wrong.tables()


def test_the_server_id_of_a_replica_is_derived_from_the_name_of_the_replicator() -> None:
    one, again, other = (read_options({}, name).server_id for name in ("shop", "shop", "crm"))
    assert one == again != other and 1 << 31 <= one < 1 << 32 and one % 2 == 0
    assert read_options({"server_id": 7}, "shop").server_id == 7
