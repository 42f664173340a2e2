"""Windows of a real slot: their records, their order, and their ends."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest

from airflow_cdc_provider.connectors.source import Boundary, Ignored
from airflow_cdc_provider.connectors.sources.postgres import create_slots, row_images, stream
from airflow_cdc_provider.connectors.sources.postgres.positions import lsn_of
from airflow_cdc_provider.connectors.sources.postgres.types import Converter, converters
from airflow_cdc_provider.core.connections.postgres_session import application_name
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres, bundle_folder
from tests.connectors.conftest import Database, ends, records
from tests.waiting import until

ITEM = "public.item"


@pytest.fixture
def shop(database: Database) -> Database:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2))")
    database.publish("item")
    return database


def test_changes_are_in_commit_order_with_their_images(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql(
        "INSERT INTO item VALUES (1, 'a', 1.50)",
        "UPDATE item SET price = 2 WHERE id = 1",
        "DELETE FROM item WHERE id = 1",
    )
    items = shop.read(start, shop.task(ITEM))
    assert isinstance(items[0], TableSchema)
    insert, update, delete = records(items)
    assert (insert.op, insert.key_before, insert.key) == ("insert", None, "[1]")
    assert insert.after == '{"id":1,"name":"a","price":"1.50"}' and insert.after_complete
    assert (update.op, update.key_before, update.key) == ("update", "[1]", "[1]")
    assert update.after == '{"id":1,"name":"a","price":"2.00"}' and update.before is None
    assert (delete.op, delete.key_before, delete.key) == ("delete", "[1]", None)
    assert json.loads(delete.before or "") == {"id": 1} and not delete.before_complete
    assert insert.order_key < update.order_key < delete.order_key
    assert {len(record.order_key) for record in records(items)} == {50}
    assert isinstance(items[-1], Boundary)


def test_transactions_are_complete_and_in_the_order_of_their_commits(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    first, second = shop.connect(autocommit=False), shop.connect(autocommit=False)
    first.execute("INSERT INTO item VALUES (1, 'first', 0)")
    second.execute("INSERT INTO item VALUES (2, 'second', 0)")
    first.execute("INSERT INTO item VALUES (3, 'first', 0)")
    second.commit()
    first.commit()
    first.close()
    second.close()
    items = shop.read(start, shop.task(ITEM))
    assert [record.key for record in records(items)] == ["[2]", "[1]", "[3]"]
    assert [record.order_key for record in records(items)] == sorted(record.order_key for record in records(items))
    assert [record.tx_seq for record in records(items)[1:]] == [1, 2]
    assert isinstance(items[-1], Boundary)


def test_changes_rolled_back_to_a_savepoint_are_not_emitted(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    with shop.connect(autocommit=False) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'kept', 0)")
        connection.execute("SAVEPOINT s")
        connection.execute("INSERT INTO item VALUES (2, 'undone', 0)")
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO item VALUES (3, 'kept', 0)")
    assert [record.key for record in records(shop.read(start, shop.task(ITEM)))] == ["[1]", "[3]"]


def test_rows_of_one_copy_statement_have_distinct_order_keys(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    with shop.connection.cursor() as cursor, cursor.copy("COPY item FROM STDIN") as copy:
        for number in range(500):
            copy.write_row((number, "same", 1))
    found = records(shop.read(start, shop.task(ITEM)))
    orders = [record.order_key for record in found]
    assert len(set(orders)) == 500 and orders == sorted(orders)
    assert [record.key for record in found] == [f"[{number}]" for number in range(500)]


def test_an_unreadable_row_does_not_stop_the_stream_and_a_newer_decoder_reads_it(
    shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that is too old for a value, and its successor."""

    def too_old(schema: TableSchema) -> list[Converter]:
        def without_new_form(known: Converter) -> Converter:
            return lambda cell: known(cell) if cell != "new form" else known("\xff")

        return list(map(without_new_form, converters(schema)))

    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'a', 0), (2, 'new form', 0)", "UPDATE item SET id = 3 WHERE id = 2")
    task = shop.task(ITEM)
    wanted = records(shop.read(start, task))
    monkeypatch.setattr(row_images, "converters", too_old)
    found = records(shop.read(start, task))
    assert [(record.op, record.key_before, record.key) for record in found] == [
        ("insert", None, "[1]"),
        ("unreadable", None, "[2]"),
        ("delete", "[2]", None),
        ("unreadable", None, "[3]"),
    ]
    assert [record.order_key for record in found] == [record.order_key for record in wanted]
    assert all(shop.source.reread(record, task, task.schema) == [record] for record in found if record.op != "insert")
    monkeypatch.undo()
    assert [one for record in found for one in shop.source.reread(record, task, task.schema)] == wanted


def test_windows_follow_each_other_without_gap_or_overlap(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    task = shop.task(ITEM)
    seen = []
    for number in range(6):
        shop.sql(f"INSERT INTO item VALUES ({number}, 'x', 0)")
        status = shop.source.status(start, [ITEM])
        assert status.has_changes
        items = shop.read(start, task, limit=status.limit)
        seen += [record.key for record in records(items)]
        start = ends(items)[-1]
        if number % 2:
            shop.source.acknowledge(start)
    assert seen == [f"[{number}]" for number in range(6)]
    assert not shop.source.status(start, [ITEM]).has_changes


def test_a_window_ends_at_its_limit(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'in', 0)")
    limit = shop.now()
    shop.sql("INSERT INTO item VALUES (2, 'beyond', 0)", "INSERT INTO item VALUES (3, 'beyond', 0)")
    items = shop.read(start, shop.task(ITEM), limit=limit)
    assert [record.key for record in records(items)] == ["[1]"]
    assert isinstance(items[-1], Boundary)


def test_reading_consumes_nothing(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'x', 0)")
    task = shop.task(ITEM)
    assert shop.read(start, task) == shop.read(start, task)


def test_a_key_change_is_a_linked_delete_and_insert(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2)", "UPDATE item SET id = 10 WHERE id = 1")
    departed, arrived = records(shop.read(start, shop.task(ITEM)))[2:]
    assert (departed.op, departed.key_before, departed.key, departed.phase) == ("delete", "[1]", None, 0)
    assert (arrived.op, arrived.key_before, arrived.key, arrived.phase) == ("insert", None, "[10]", 1)
    assert departed.link_id == arrived.link_id and departed.link_id
    assert departed.order_key < arrived.order_key
    assert arrived.after == '{"id":10,"name":"a","price":"1.00"}' and arrived.after_complete


def test_swapped_keys_are_emitted_as_they_were_written(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2)")
    with shop.connect(autocommit=False) as connection:
        for old, new in ((1, -1), (2, 1), (-1, 2)):
            connection.execute("UPDATE item SET id = %s WHERE id = %s", (new, old))
    found = records(shop.read(start, shop.task(ITEM)))[2:]
    moves = [(record.op, record.key_before or record.key) for record in found]
    assert moves == [
        ("delete", "[1]"),
        ("insert", "[-1]"),
        ("delete", "[2]"),
        ("insert", "[1]"),
        ("delete", "[-1]"),
        ("insert", "[2]"),
    ]


def test_a_truncate_is_a_record_of_each_table(shop: Database) -> None:
    shop.sql(
        "CREATE TABLE line (id int PRIMARY KEY, item int REFERENCES item)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "ALTER PUBLICATION cdc ADD TABLE line, other",
    )
    start = shop.source.open_stream([ITEM, "public.line"])
    shop.sql("INSERT INTO item VALUES (1, 'a', 1)", "TRUNCATE item CASCADE", "INSERT INTO item VALUES (2, 'b', 1)")
    found = records(shop.read(start, shop.task(ITEM), shop.task("public.line")))
    assert [(record.table, record.op) for record in found] == [
        (ITEM, "insert"),
        (ITEM, "truncate"),
        ("public.line", "truncate"),
        (ITEM, "insert"),
    ]
    assert len({record.order_key for record in found}) == 4


def test_changes_of_other_tables_are_counted_and_start_no_window(shop: Database) -> None:
    shop.sql("CREATE TABLE other (id int PRIMARY KEY)", "ALTER PUBLICATION cdc ADD TABLE other")
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO other SELECT generate_series(1, 7)")
    assert not shop.source.status(start, [ITEM]).has_changes
    shop.sql("INSERT INTO item VALUES (1, 'a', 1)")
    assert shop.source.status(start, [ITEM]).has_changes
    items = shop.read(start, shop.task(ITEM))
    assert [item.count for item in items if isinstance(item, Ignored)] == [7]
    assert len(records(items)) == 1


def test_the_retained_bytes_of_the_slot_are_reported(shop: Database) -> None:
    assert shop.source.retained_log(None).bytes is None, "no slot, nothing kept"
    start = shop.source.open_stream([ITEM])
    before = shop.source.retained_log(None).bytes
    shop.sql(
        "CREATE TABLE noise (t text)",
        "INSERT INTO noise SELECT repeat(md5(n::text), 40) FROM generate_series(1, 2000) n",
    )
    after = shop.source.retained_log(None).bytes
    assert before is not None and after is not None and after - before > 1024 * 1024
    assert start


def test_the_wal_that_the_slot_may_still_use_is_reported(shop: Database) -> None:
    shop.source.open_stream([ITEM])
    assert shop.source.retained_log(None).free_bytes is None, "this server has no limit"
    shop.sql("ALTER SYSTEM SET max_slot_wal_keep_size = '640MB'", "SELECT pg_reload_conf()")
    try:
        until(lambda: shop.source.retained_log(None).free_bytes is not None, "the server has its new setting")
        limited = shop.source.retained_log(None)
        assert limited.free_bytes is not None and 0 < limited.free_bytes <= 700 << 20
        shop.sql(
            "CREATE TABLE noise (t text)",
            "INSERT INTO noise SELECT repeat(md5(n::text), 40) FROM generate_series(1, 20000) n",
        )
        after = shop.source.retained_log(None)
        assert limited.end is not None and after.end is not None and after.free_bytes is not None
        written = after.end - limited.end
        assert written > 10 << 20
        assert abs(limited.free_bytes - after.free_bytes - written) <= 32 << 20, "in whole segments"
    finally:
        shop.sql("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


def test_the_slot_never_goes_back(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'x', 0)")
    (end,) = ends(shop.read(start, shop.task(ITEM)))
    for position in (end, end, start):
        shop.source.acknowledge(position)
    assert lsn_of(shop.source.open_stream([ITEM])) == lsn_of(end)


def test_a_missing_slot_is_a_lost_position(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.source.drop_stream()
    shop.source.drop_stream()
    for act in (
        lambda: shop.source.status(start, [ITEM]),
        lambda: shop.read(start, shop.task(ITEM)),
        lambda: shop.source.acknowledge(start),
    ):
        with pytest.raises(PositionLost, match=r"SRC013.*airflow cdc resync"):
            act()


def test_a_slot_whose_wal_was_removed_is_a_lost_position() -> None:
    with EmbeddedPostgres({"max_slot_wal_keep_size": "1MB", "max_wal_size": "32MB"}) as server:
        database = Database(server)
        database.sql("CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE noise (n int)")
        database.publish("item")
        start = database.source.open_stream([ITEM])
        for _ in range(4):
            database.sql("INSERT INTO noise VALUES (1)", "SELECT pg_switch_wal()")
        database.sql("CHECKPOINT")
        with pytest.raises(PositionLost, match="the server removed WAL"):
            database.source.status(start, [ITEM])
        with pytest.raises(PositionLost, match="the server removed WAL"):
            database.read(start, database.task(ITEM))
        (problem,) = database.source.check([database.task(ITEM)])
        assert problem.code == "SRC013" and "pg_drop_replication_slot" in problem.do
        database.drop()


def test_a_prepared_transaction_counts_when_it_is_committed(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    with shop.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO item VALUES (1, 'prepared', 0)")
        connection.execute("PREPARE TRANSACTION 'p'")
    assert not shop.source.status(start, [ITEM]).has_changes
    shop.sql("INSERT INTO item VALUES (2, 'plain', 0)", "COMMIT PREPARED 'p'")
    assert [record.key for record in records(shop.read(start, shop.task(ITEM)))] == ["[2]", "[1]"]


def test_a_slot_that_another_reader_advanced_is_a_lost_position(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'x', 0)")
    shop.sql(f"SELECT * FROM pg_replication_slot_advance('cdc_{shop.replicator}', pg_current_wal_flush_lsn())")
    with pytest.raises(PositionLost, match="another program"):
        shop.source.status(start, [ITEM])
    with pytest.raises(PositionLost, match="another program"):
        shop.read(start, shop.task(ITEM))


def test_a_slot_that_cannot_be_created_in_time_is_reported_with_the_blocking_sessions(
    shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_slots, "CREATE_LIMIT_S", 1)
    writer = shop.connect(autocommit=False)
    writer.execute("INSERT INTO item VALUES (1, 'a secret value', 42)")
    with pytest.raises(SourceUnavailable, match="SRC021") as caught:
        shop.source.open_stream([ITEM])
    with pytest.raises(SourceUnavailable, match="SRC021"), shop.source.copy(shop.task(ITEM), 1, {}, 1):
        pass
    assert f"process {writer.info.backend_pid}," in str(caught.value)
    writer.close()
    assert "INSERT INTO item VALUES (?, ?, ?)" in str(caught.value)
    assert "secret" not in str(caught.value)
    shop.source.open_stream([ITEM])


def test_a_session_of_a_dead_process_is_ended(shop: Database) -> None:
    """The walsender keeps the slot as an orphan of ours would; by its name, process 4194305 is dead."""
    start = shop.source.open_stream([ITEM])
    purpose = application_name(shop.source.client.replicator, "read").rpartition(".")[0]
    holder = hold_slot(shop, f"{purpose}.4194305")
    assert not shop.source.status(start, [ITEM]).has_changes
    holder.join(5)
    assert not holder.is_alive()


def test_a_slot_used_by_another_reader_can_be_retried(shop: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "WAIT_FOR_SLOT_S", 0.2)
    start = shop.source.open_stream([ITEM])
    holder = hold_slot(shop, "somebody")
    with pytest.raises(SourceUnavailable, match=r"SRC015.*somebody"):
        shop.source.status(start, [ITEM])
    shop.sql("SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE active_pid IS NOT NULL")
    holder.join(5)


def hold_slot(shop: Database, application_name: str) -> threading.Thread:
    """A replication session that streams from the slot until it is ended."""
    process = subprocess.Popen(
        [
            bundle_folder() / "pginstall18" / "bin" / "pg_recvlogical",
            "--no-loop",
            f"--dbname={shop.server.dsn(shop.name)}?application_name={application_name}",
            f"--slot=cdc_{shop.replicator}",
            "--start",
            "--file=-",
            "--option=proto_version=1",
            "--option=publication_names=cdc",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    thread = threading.Thread(target=process.wait)
    thread.start()
    while not shop.ask("SELECT active FROM pg_replication_slots WHERE slot_name = " + f"'cdc_{shop.replicator}'"):
        assert process.poll() is None
    return thread


def test_changes_made_without_the_publication_are_a_lost_position(shop: Database) -> None:
    """Since version 18 the server skips them with a warning; before, it fails."""
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'seen', 0)", "ALTER PUBLICATION cdc RENAME TO mislaid")
    shop.sql("INSERT INTO item VALUES (2, 'passed over', 0)", "ALTER PUBLICATION mislaid RENAME TO cdc")
    with pytest.raises(PositionLost, match=r"SRC013.*publication.*airflow cdc resync"):
        shop.source.status(start, [ITEM])
    with pytest.raises(PositionLost, match=r"SRC013.*publication"):
        shop.read(start, shop.task(ITEM))


def test_a_missing_publication_without_changes_loses_nothing(shop: Database) -> None:
    start = shop.source.open_stream([ITEM])
    shop.sql("INSERT INTO item VALUES (1, 'seen', 0)", "ALTER PUBLICATION cdc RENAME TO mislaid")
    shop.sql("ALTER PUBLICATION mislaid RENAME TO cdc", "INSERT INTO item VALUES (2, 'seen, too', 0)")
    assert shop.source.status(start, [ITEM]).has_changes
    assert [record.key for record in records(shop.read(start, shop.task(ITEM)))] == ["[1]", "[2]"]
