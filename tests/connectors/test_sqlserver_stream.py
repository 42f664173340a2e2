"""Windows of the change tables: their records, their order, their ends, and the changes that they lack."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary, Ignored
from airflow_cdc_provider.connectors.sources.sqlserver import stream
from airflow_cdc_provider.connectors.sources.sqlserver.positions import position_lsn
from airflow_cdc_provider.core.errors import CheckFailed, IntegrityBroken, PositionLost, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from tests.connectors.sqlserver_database import Shop, apply, holes, image, records
from tests.simulators.sqlserver.tables import Col, Table

COLUMNS = (Col("id", "int", False), Col("word", "nvarchar(20)"), Col("n", "int"))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def table(shop: Shop) -> Table:
    return shop.table("dbo.t", *COLUMNS)


def ops(items: Any) -> list[tuple[str, str | None]]:
    return [(str(one.op), one.key or one.key_before) for one in records(items)]


def test_a_capture_job_that_has_stopped_is_a_silent_writer(shop: Shop, table: Table) -> None:
    shop.insert(table, {"id": 1, "word": "a"})
    (inserted,) = records(shop.window(shop.task("dbo.t")))
    assert shop.source.silent_since() is None
    shop.engine.pass_time(3600)
    assert shop.source.silent_since() == inserted.commit_ts


def test_changes_of_a_transaction_are_in_the_order_of_its_commands(shop: Shop, table: Table) -> None:
    with shop.engine.transaction() as transaction:
        transaction.insert(table, {"id": 1, "word": "a"})
        transaction.update(table, lambda row: row["id"] == 1, lambda _row: {"word": "b"})
        transaction.delete(table, lambda row: row["id"] == 1)
    items = shop.window(shop.task("dbo.t"))
    inserted, updated, deleted = records(items)
    assert ops(items) == [("insert", "[1]"), ("update", "[1]"), ("delete", "[1]")]
    assert inserted.order_key < updated.order_key < deleted.order_key and len(inserted.order_key) == 60
    assert (updated.before_complete, updated.after_complete, deleted.before_complete) == (True, True, True)
    assert len({one.tx_id for one in records(items)}) == 1 and [one.tx_seq for one in records(items)] == [1, 2, 3]
    assert inserted.commit_ts is not None and inserted.commit_ts.isoformat() == "2026-01-02T01:17:25.027000+00:00"


def test_row_lsns_that_do_not_follow_the_commands_do_not_decide_the_order(tmp_path: Path) -> None:
    shop = Shop(tmp_path, shuffle=lambda lsns: lsns.reverse())
    table = shop.table("dbo.t", *COLUMNS)
    with shop.engine.transaction() as transaction:
        transaction.insert(table, {"id": 1, "word": "a"})
        transaction.update(table, lambda row: row["id"] == 1, lambda _row: {"word": "b"})
    task = shop.task("dbo.t")
    rows: dict[str, Any] = {}
    apply(rows, records(shop.window(task)), task.schema)
    assert rows == shop.truth(task)


def test_a_moved_key_of_a_clustered_index_is_a_delete_and_an_insert(shop: Shop, table: Table) -> None:
    shop.insert(table, {"id": 1, "word": "a"}, {"id": 2, "word": "b"}, {"id": 3, "word": "c"})
    task = shop.task("dbo.t")
    rows: dict[str, Any] = {}
    apply(rows, records(shop.window(task)), task.schema)
    shop.update(table, 3, id=9)
    with shop.engine.transaction() as transaction:
        transaction.update(table, lambda _row: True, lambda row: {"id": row["id"] + 1})
    items = shop.window(task)
    assert [op for op, _ in ops(items)][:2] == ["delete", "insert"] and not holes(items)
    apply(rows, records(items), task.schema)
    assert rows == shop.truth(task) and set(rows) == {"[2]", "[3]", "[10]"}


def test_rows_of_a_heap_that_pass_through_each_other_s_keys_keep_their_values(shop: Shop) -> None:
    table = shop.table("dbo.heap", *COLUMNS, clustered=False)
    shop.insert(table, *({"id": number, "word": str(number)} for number in range(1, 6)))
    task = shop.task("dbo.heap")
    rows: dict[str, Any] = {}
    apply(rows, records(shop.window(task)), task.schema)
    with shop.engine.transaction() as transaction:
        transaction.update(table, lambda row: row["id"] < 5, lambda row: {"id": row["id"] % 4 + 1})
        transaction.update(table, lambda row: row["id"] > 1, lambda row: {"id": row["id"] + 1})
    items = shop.window(task)
    assert "departs" not in str(holes(items)) and not holes(items)
    apply(rows, records(items), task.schema)
    assert rows == shop.truth(task) and {row["word"] for row in rows.values()} == set("12345")


def test_an_update_that_is_captured_as_delete_and_insert_is_applied(shop: Shop, table: Table) -> None:
    shop.insert(table, {"id": 1, "word": "a", "n": 1})
    with shop.engine.transaction() as transaction:
        transaction.update(table, lambda _row: True, lambda _row: {"word": "b"}, as_pairs=True)
    task = shop.task("dbo.t")
    items = shop.window(task)
    assert ops(items) == [("insert", "[1]"), ("delete", "[1]"), ("insert", "[1]")] and not holes(items)
    rows: dict[str, Any] = {}
    apply(rows, records(items), task.schema)
    assert rows == shop.truth(task)


def test_large_values_that_an_update_does_not_change_are_unknown_and_stay(shop: Shop) -> None:
    large = [Col(name, kind) for name, kind in (("doc", "nvarchar(max)"), ("old", "text"), ("x", "xml"))]
    filler = [Col(f"c{number}", "int") for number in range(9)]
    table = shop.table("dbo.t", Col("id", "int", False), *filler, *large, Col("n", "int"))
    shop.insert(table, {"id": 1, "doc": "a", "old": "b", "x": "<c/>", "n": 1})
    shop.update(table, 1, n=2)
    shop.update(table, 1, doc=None, n=3)
    shop.update(table, 1, old="d")
    task = shop.task("dbo.t")
    items = shop.window(task)
    _, unchanged, cleared, changed = records(items)
    assert not {"doc", "old", "x"} & image(unchanged).keys() and not unchanged.after_complete
    assert image(cleared)["doc"] is None and "old" not in image(cleared)
    assert image(changed)["old"] == "d" and '"old"' not in str(changed.before)
    rows: dict[str, Any] = {}
    apply(rows, records(items), task.schema)
    assert rows == shop.truth(task) and not holes(items)
    shop.delete(table, 1)
    (deleted,) = records(shop.window(task))
    assert deleted.key_before == "[1]" and not deleted.before_complete and '"doc":null' in str(deleted.before)


def test_a_moved_row_whose_large_values_may_be_missing_is_a_hole(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("id", "int", False), Col("doc", "nvarchar(max)"), Col("old", "ntext"))
    task = shop.task("dbo.t")
    shop.insert(table, {"id": 1, "doc": "a", "old": "b"}, {"id": 5})
    assert not holes(shop.window(task))
    shop.update(table, 1, id=2)
    assert not holes(shop.window(task)), "the insert has all values"
    shop.update(table, 2, id=3, doc=None)
    ((name, detail),) = holes(shop.window(task))
    assert name == "dbo.t" and detail.endswith("maybe without its doc")
    shop.update(table, 5, id=6)
    assert [detail.rpartition(" ")[2] for _, detail in holes(shop.window(task))] == ["old"]


def test_rows_with_large_values_that_pass_through_a_key_are_a_hole(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("id", "int", False), Col("doc", "nvarchar(max)"), clustered=False)
    shop.insert(table, {"id": 1, "doc": "a"}, {"id": 2, "doc": "b"})
    task = shop.task("dbo.t")
    assert not holes(shop.window(task))
    with shop.engine.transaction() as transaction:
        transaction.update(table, lambda _row: True, lambda row: {"id": row["id"] + 1})
    ((_, detail),) = holes(shop.window(task))
    assert detail.startswith("two rows of dbo.t may have held one key in a transaction")


def test_a_row_with_large_values_that_comes_and_goes_in_one_transaction_is_no_hole(shop: Shop) -> None:
    large = Col("id", "int", False), Col("doc", "nvarchar(max)"), Col("n", "int")
    tables = [shop.table("dbo.heap", *large, clustered=False), shop.table("dbo.clustered", *large)]
    tasks = [shop.task(table.full_name) for table in tables]
    with shop.engine.transaction() as transaction:
        for table in tables:
            transaction.insert(table, {"id": 1, "doc": "a"}, {"id": 2, "doc": "b"})
            transaction.update(table, lambda row: row["id"] == 1, lambda _row: {"n": 1})
            transaction.update(table, lambda row: row["id"] == 1, lambda _row: {"id": 3})
            transaction.delete(table, lambda row: row["id"] == 2)
    items = shop.window(*tasks)
    assert not holes(items)
    for task in tasks:
        rows: dict[str, Any] = {}
        apply(rows, [one for one in records(items) if one.table == task.table], task.schema)
        assert rows == shop.truth(task) and set(rows) == {"[3]"}


def test_a_window_ends_at_its_limit_and_never_inside_a_transaction(
    shop: Shop, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "COMMITS_AT_ONCE", 2)
    task = shop.task("dbo.t")
    for number in range(5):
        shop.insert(table, {"id": 2 * number}, {"id": 2 * number + 1})
    shop.capture.scan(3)
    first = shop.window(task, scan=False)
    assert [item.position for item in first if isinstance(item, Boundary)][-1] == shop.position
    assert len(records(first)) == 6 and sum(isinstance(item, Boundary) for item in first) == 2
    second = shop.window(task)
    assert len(records(second)) == 4 and isinstance(second[-1], Boundary)
    assert shop.status("dbo.t").has_changes is False


def test_rolled_back_and_uncaptured_changes_are_in_no_window(shop: Shop, table: Table) -> None:
    other = shop.engine.create_table("dbo.other", COLUMNS, ("id",))
    transaction = shop.engine.begin()
    transaction.insert(table, {"id": 1})
    transaction.rollback()
    shop.insert(other, {"id": 1})
    shop.insert(table, {"id": 2})
    assert not table.rows.keys() & {1} and ops(shop.window(shop.task("dbo.t"))) == [("insert", "[2]")]


def test_a_change_counts_when_it_is_captured_and_an_idle_position_advances(shop: Shop, table: Table) -> None:
    shop.insert(table, {"id": 1})
    assert not shop.status("dbo.t").has_changes
    shop.capture.scan()
    assert shop.status("dbo.t").has_changes
    shop.window(shop.task("dbo.t"))
    shop.sleep(1000)
    quiet = shop.status("dbo.t")
    assert (quiet.has_changes, quiet.idle) == (False, None), "not far enough for a window of its own"
    shop.sleep(4000)
    moved = shop.status("dbo.t")
    assert not moved.has_changes and moved.idle == moved.limit
    shop.position = moved.limit
    kept = shop.source.retained_log(shop.position)
    assert kept.since is not None and kept.keeps == timedelta(days=7)


def test_a_row_filter_leaves_out_rows_and_moves_them(shop: Shop, table: Table) -> None:
    where = (Condition("n", Comparison.GREATER, 5), Condition("word", Comparison.NOT_EQUAL, "A"))
    task = shop.task("dbo.t", where=where)
    shop.insert(table, {"id": 1, "n": 9, "word": "a"}, {"id": 2, "n": 9, "word": "A"}, {"id": 3, "n": 1, "word": "b"})
    shop.update(table, 3, n=6)
    shop.update(table, 1, n=5)
    items = shop.window(task)
    assert ops(items) == [("insert", "[1]"), ("insert", "[3]"), ("delete", "[1]")]
    assert sum(item.count for item in items if isinstance(item, Ignored)) == 2
    rows: dict[str, Any] = {}
    apply(rows, records(items), task.schema)
    assert rows == shop.truth(task) and set(rows) == {"[3]"}


# Holes


def test_changes_that_cleanup_removed_before_they_were_read_are_a_hole_or_a_lost_position(
    shop: Shop, table: Table
) -> None:
    shop.insert(table, {"id": 1})
    task = shop.task("dbo.t")
    shop.window(task)
    shop.insert(table, {"id": 2})
    kept = shop.engine.log[-1].lsn
    shop.insert(table, {"id": 3})
    shop.capture.scan()
    shop.capture.cleanup(kept)
    with pytest.raises(PositionLost, match="was removed by cleanup"):
        shop.status("dbo.t")
    with pytest.raises(PositionLost, match="SRC013"):
        shop.window(task, limit={"lsn": f"{kept:020x}", "at": ""})


def test_rows_that_cleanup_removes_while_a_window_is_read_are_a_hole(shop: Shop, table: Table) -> None:
    task = shop.task("dbo.t")
    shop.insert(table, {"id": 1})
    shop.insert(table, {"id": 2})
    shop.capture.scan()
    last = shop.engine.log[-1].lsn

    def clean(query: str) -> None:
        if "[dbo_t_CT]" in query and "ORDER BY" in query:
            shop.client.before = lambda _query: None
            shop.capture.cleanup(last)

    shop.client.before = clean
    limit = shop.source.status(shop.position, ["dbo.t"]).limit
    items = list(shop.source.read(shop.source.splits(shop.position, limit)[0], [task], 1))
    assert ops(items) == [("insert", "[2]")] and [name for name, _ in holes(items)] == ["dbo.t"]
    assert isinstance(items[-1], Boundary)


def test_a_table_that_is_captured_again_has_a_hole_and_the_others_have_none(shop: Shop, table: Table) -> None:
    other = shop.table("dbo.other", *COLUMNS)
    tasks = [shop.task("dbo.t"), shop.task("dbo.other")]
    shop.insert(other, {"id": 1})
    shop.window(*tasks)
    shop.capture.disable(shop.capture.instances[0])
    shop.insert(table, {"id": 7})
    assert shop.status("dbo.t", "dbo.other").outside.keys() == {"dbo.t"}
    assert "sp_cdc_enable_table" in shop.status("dbo.t").outside["dbo.t"].do
    shop.capture.enable(table)
    shop.insert(table, {"id": 8})
    shop.insert(other, {"id": 2})
    items = shop.window(*tasks)
    assert [name for name, _ in holes(items)] == ["dbo.t"]
    assert [(one.table, one.key) for one in records(items)] == [("dbo.t", "[8]"), ("dbo.other", "[2]")]
    copy, rows = shop.copied(tasks[0])
    assert set(rows) == {"[7]", "[8]"}
    (hole,) = (item for item in items if hasattr(item, "order_key") and hasattr(item, "kind"))
    assert hole.order_key <= copy.floor, "the copy repairs the hole"
    assert not holes(shop.window(*tasks))


def test_a_copy_right_after_a_new_capture_instance_repairs_the_hole_before_it(shop: Shop, table: Table) -> None:
    task = shop.task("dbo.t")
    shop.capture.disable(shop.capture.instances[0])
    shop.insert(table, {"id": 1})
    shop.capture.enable(table)
    copy, rows = shop.copied(task)
    assert set(rows) == {"[1]"}
    shop.insert(table, {"id": 2})
    items = shop.window(task)
    assert [item.order_key <= copy.floor for item in items if hasattr(item, "kind")] == [True]
    apply(rows, records(items), task.schema, copy.floor)
    assert rows == shop.truth(task)


def test_a_table_without_a_capture_instance_is_a_hole_of_each_window(shop: Shop, table: Table) -> None:
    other = shop.table("dbo.other", *COLUMNS)
    tasks = [shop.task("dbo.t"), shop.task("dbo.other")]
    shop.capture.disable(shop.capture.instances[0])
    shop.insert(other, {"id": 1})
    items = shop.window(*tasks)
    assert [name for name, _ in holes(items)] == ["dbo.t"] and ops(items) == [("insert", "[1]")]


def test_a_dropped_table_is_a_hole_and_another_one_of_its_name_has_another_identity(shop: Shop, table: Table) -> None:
    other = shop.table("dbo.other", *COLUMNS)
    tasks = [shop.task("dbo.t"), shop.task("dbo.other")]
    before = shop.source.identities(["dbo.t"])["dbo.t"]
    shop.capture.drop_table(table)
    assert shop.source.identities(["dbo.t"]) == {}
    shop.insert(other, {"id": 1})
    assert [name for name, _ in holes(shop.window(*tasks))] == ["dbo.t"]
    again = shop.capture_new("dbo.t", *COLUMNS)
    shop.insert(again, {"id": 1})
    assert shop.source.identities(["dbo.t"])["dbo.t"].table != before.table
    assert [name for name, _ in holes(shop.window(*tasks))] == ["dbo.t"]


def test_another_log_is_a_lost_position(shop: Shop, table: Table) -> None:
    shop.insert(table, {"id": 1})
    task = shop.task("dbo.t")
    shop.window(task)
    position = dict(shop.position)
    shop.position = {**position, "at": "2026-01-01 00:00:00.000"}
    with pytest.raises(PositionLost, match="it is another log"):
        shop.status("dbo.t")
    shop.position = {**position, "lsn": f"{position_lsn(position) + 1:020x}"}
    with pytest.raises(PositionLost, match="before our position"):
        shop.status("dbo.t")
    shop.insert(table, {"id": 2})
    shop.capture.scan()
    with pytest.raises(PositionLost, match=r"is not in cdc\.lsn_time_mapping"):
        shop.status("dbo.t")
    with pytest.raises(PositionLost, match="SRC013"):
        shop.source.retained_log(shop.position)


def test_capture_that_is_disabled_or_enabled_again_is_a_lost_position(shop: Shop, table: Table) -> None:
    shop.capture.disable_database()
    with pytest.raises(PositionLost, match="not enabled"):
        shop.status("dbo.t")
    with pytest.raises(CheckFailed, match="SRC121"):
        shop.source.open_stream([])
    shop.capture.enable_database()
    with pytest.raises(PositionLost, match="enabled again"):
        shop.status("dbo.t")
    with pytest.raises(SourceUnavailable, match="SRC114"):
        shop.source.open_stream([])


def test_a_restored_database_has_another_identity(shop: Shop) -> None:
    before = shop.source.identity()
    shop.engine.files.execute("UPDATE sys.database_recovery_status SET recovery_fork_guid = 'other'")
    after = shop.source.identity()
    assert before["database"] == "shop" and before["recovery_fork"] != after["recovery_fork"]


def test_half_an_update_is_not_sealed(shop: Shop, table: Table) -> None:
    shop.insert(table, {"id": 1})
    shop.update(table, 1, n=2)
    shop.capture.scan()
    shop.engine.files.execute("DELETE FROM cdc.[dbo_t_CT] WHERE [__$operation] = 3")
    with pytest.raises(IntegrityBroken, match="SRC030"):
        shop.window(shop.task("dbo.t"))


def test_a_window_that_is_read_again_has_the_same_records(shop: Shop, table: Table) -> None:
    for number in range(3):
        shop.insert(table, {"id": number})
    start, task = shop.position, shop.task("dbo.t")
    first = shop.window(task)
    end = shop.position
    shop.insert(table, {"id": 9})
    shop.capture.scan()
    shop.position = start
    again = shop.window(task, limit=end)
    assert [one for one in again if isinstance(one, ChangeRecord)] == [
        one for one in first if isinstance(one, ChangeRecord)
    ]
