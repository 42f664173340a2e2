"""Copies beside writers: their anchor, their splits, and the wait for the capture job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source_features import CapturesLater
from airflow_cdc_provider.connectors.sources.sqlserver import copy as copies
from airflow_cdc_provider.connectors.sources.sqlserver import stream
from airflow_cdc_provider.connectors.sources.sqlserver.positions import key_after, position_lsn
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from tests.connectors.sqlserver_database import Shop, apply, records
from tests.simulators.sqlserver.tables import Col

COLUMNS = (Col("id", "int", False), Col("word", "nvarchar(20)"), Col("n", "int"))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_splits_cover_each_row_once_whatever_is_written_between_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_cdc_provider.connectors.key_ranges.ROWS_AT_ONCE", 10)
    monkeypatch.setattr(copies, "ROWS_AT_ONCE", 7)
    table = shop.table("dbo.t", *COLUMNS)
    shop.insert(table, *({"id": number, "word": "old", "n": number} for number in range(100)))
    task = shop.task("dbo.t")
    shop.window(task)
    moves = iter([(5, 95), (60, 3000), (99, -4), (30, 31)])

    def move() -> None:
        if (pair := next(moves, None)) and pair[1] not in {row["id"] for row in table.rows.values()}:
            shop.update(table, pair[0], id=pair[1], word="moved")
        shop.update(table, 50, n=shop.engine.number())

    copy, rows = shop.copied(task, 2, move)
    assert len(copy.read.splits) == 8
    apply(rows, records(shop.window(task)), task.schema, copy.floor)
    assert rows == shop.truth(task)


def test_no_split_reads_a_row_of_another_one(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_cdc_provider.connectors.key_ranges.ROWS_AT_ONCE", 10)
    shop.insert(shop.table("dbo.t", *COLUMNS), *({"id": number} for number in range(50)))
    task = shop.task("dbo.t")
    with shop.source.copy(task, 1, shop.position, 2) as copy:
        assert len(copy.read.splits) == 5
        assert sum(len(one) for split in copy.read.splits for one in shop.source.read_split(split, copy.schema)) == 50


def test_a_column_that_was_dropped_and_added_again_is_not_captured(shop: Shop) -> None:
    table = shop.table("dbo.t", *COLUMNS)
    shop.engine.alter(table, "ALTER TABLE dbo.t DROP COLUMN n", table.columns[:2])
    shop.engine.alter(table, "ALTER TABLE dbo.t ADD n int NULL", [*table.columns, Col("n", "int")])
    shop.capture.scan()
    with pytest.raises(CheckFailed, match="SRC116"):
        shop.copied(shop.task("dbo.t"))


def test_a_copy_begins_when_the_commit_of_its_anchor_is_visible(shop: Shop) -> None:
    """The capture job reads a commit from the log before queries show it."""
    table = shop.table("dbo.t", *COLUMNS)
    transaction = shop.engine.begin()
    transaction.insert(table, {"id": 1})
    shop.engine.commit(transaction, visible=False)
    task = shop.task("dbo.t")
    first = records(shop.window(task))
    assert [one.key for one in first] == ["[1]"]

    def show(seconds: float) -> None:
        shop.engine.pass_time(seconds)
        with shop.engine.writing():
            shop.engine.show(table)

    shop.source.on_sleep[str(shop.engine.folder)] = show
    copy, rows = shop.copied(task)
    assert set(rows) == {"[1]"} and copy.floor == key_after(1, position_lsn(shop.position)) >= first[0].order_key


def test_a_window_that_begins_after_the_wait_has_everything_that_a_copy_has_shown(shop: Shop) -> None:
    assert isinstance(shop.source, CapturesLater)
    table = shop.table("dbo.t", *COLUMNS)
    task = shop.task("dbo.t")
    shop.insert(table, {"id": 1})
    shop.source.on_sleep[str(shop.engine.folder)] = shop.engine.pass_time
    _, rows = shop.copied(task)
    shop.source.on_sleep[str(shop.engine.folder)] = shop.sleep
    assert not shop.status("dbo.t").has_changes, "the copy is ahead of the stream"
    shop.source.wait_for_capture()
    streamed: dict[str, Any] = {}
    apply(streamed, records(shop.window(task, scan=False)), task.schema)
    assert streamed == rows


def test_a_capture_job_that_does_not_run_can_be_retried(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CAPTURE_LIMIT_S", 10)
    shop.source.on_sleep[str(shop.engine.folder)] = shop.engine.pass_time
    with pytest.raises(SourceUnavailable, match="CPY010"):
        shop.source.wait_for_capture()


def test_a_row_filter_reads_the_rows_that_the_stream_has(shop: Shop) -> None:
    table = shop.table("dbo.t", *COLUMNS)
    where = (Condition("n", Comparison.IN, (1, 2)), Condition("word", Comparison.IS_NOT_NULL))
    shop.insert(table, *({"id": number, "n": number, "word": "x" if number else None} for number in range(4)))
    shop.insert(table, {"id": 9, "n": 2})
    assert set(shop.truth(shop.task("dbo.t", where=where))) == {"[1]", "[2]"}


def test_what_cannot_be_copied_exactly_is_refused(shop: Shop) -> None:
    shop.engine.create_table("dbo.uncaptured", COLUMNS, ("id",))
    with pytest.raises(CheckFailed, match="SRC115"):
        shop.copied(shop.task("dbo.uncaptured"))
    shop.engine.files.execute("UPDATE cdc.change_tables SET start_lsn = NULL")
    table = shop.table("dbo.new", *COLUMNS)
    shop.engine.files.execute("UPDATE cdc.change_tables SET start_lsn = NULL")
    with pytest.raises(SourceUnavailable, match="CPY011"):
        shop.copied(shop.task("dbo.new"))
    assert table.rows == {}
    shop.engine.files.execute("UPDATE sys.databases SET snapshot_isolation_state = 0")
    with pytest.raises(CheckFailed, match="SRC122"):
        shop.copied(shop.task("dbo.new"))
