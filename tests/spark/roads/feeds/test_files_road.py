"""The whole road of a folder of event files: empty copy, windows, Delta. The simulated source is the judge."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import OnBadRecord, Source
from airflow_cdc_provider.core.table.states import TableState
from tests.model.seeds import seed
from tests.spark.roads.feeds.scene import POSTGRES, Fed, Table, definition, line, table, with_tables

pytestmark = pytest.mark.jvm
SEED = seed()
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("a/1.jsonl", messages)``: a file that has been left alone for an hour."""
    age_s = 3600.0

    def written(path: str, messages: Iterable[Message] | bytes) -> None:
        nonlocal age_s
        file = tmp_path / "events" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(messages if isinstance(messages, bytes) else "\n".join(map(line, messages)).encode())
        moment = time.time() - age_s
        os.utime(file, (moment, moment))
        age_s -= 1

    return written


def scene(folder: Path, spark: SparkSession, *tables: Table, **rules: object) -> Fed:
    options = {"format": "debezium", "location": f"{folder}/events", "topic_prefix": "p.d"}
    names = [one.name for one in tables]
    return Fed(folder, spark, definition(folder, Source("files", "", options=options), names, **rules))


def test_copies_follow_files_of_several_tables_to_what_the_source_holds(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    tables = [table("t", f"{SEED} t"), table("u", f"{SEED} u", manner=POSTGRES)]
    for one in tables:
        write(f"{one.name}/0.jsonl", one.next(3))
    feed = scene(tmp_path, spark, *tables)
    feed.green()
    for number in range(1, 4):
        for one in tables:
            write(f"{one.name}/{number}.jsonl", one.next(len(one.messages) // 5))
        write(f"both/{number}.jsonl", [message for one in tables for message in one.next(2)])
        feed.green()
    for one in tables:
        write(f"{one.name}/0.late.jsonl", one.rest())
    feed.green()
    assert list(feed.differences(*tables)) == [], f"CDC_SEED={SEED}"
    assert set(feed.green().states) == {"open_window", "close_window"}, "nothing new: no Spark"
    assert {row.state for row in feed.rows_of().values()} == {TableState.REPLICATING}


def test_a_first_copy_that_failed_stands_before_what_was_read_meanwhile(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(9))
    feed = scene(tmp_path, spark, one)
    assert not feed.run(leave_out=["snapshot"]).green
    write("2.jsonl", one.rest())
    feed.green()
    assert feed.replicator().log.manifest(2).tables[one.name].rows, "the window was read without a copy"
    feed.green()
    assert list(feed.differences(one)) == []


def test_a_table_that_is_added_later_is_refused_and_the_others_go_on(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    first, later = table("t", f"{SEED} t"), table("u", f"{SEED} u")
    write("1.jsonl", [*first.next(9), *later.next(9)])
    feed = scene(tmp_path, spark, first)
    feed.green()
    write("2.jsonl", [*first.rest(), *later.rest()])
    both = with_tables(feed, first, later)
    road = both.run()
    assert any("CPY006" in said or "from its beginning" in said for said in road.problems), road.problems
    assert list(both.differences(first)) == []


def test_a_resync_takes_the_table_from_the_head_of_the_log(tmp_path: Path, spark: SparkSession, write: Write) -> None:
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(20))
    feed = scene(tmp_path, spark, one)
    feed.green()
    write("2.jsonl", one.rest())
    feed.green()
    replicator = feed.replicator()
    place = replicator.target.locate(replicator.target.table_name(one.name))
    spark.sql(f"DELETE FROM delta.`{place}`")
    feed.ask(CommandKind.RESYNC, one.name, approve_deletes=True)
    feed.run()
    feed.green()
    assert list(feed.differences(one)) == []


def test_a_line_of_no_table_stops_every_table_and_is_not_lost(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    tables = [table("t", f"{SEED} t"), table("u", f"{SEED} u")]
    for one in tables:
        write(f"{one.name}.jsonl", one.next(9))
    feed = scene(tmp_path, spark, *tables, on_bad_record=OnBadRecord.QUARANTINE)
    feed.green()
    write("broken.jsonl", b'{"op": ')
    for one in tables:
        write(f"{one.name}2.jsonl", one.rest())
    feed.run()
    states = {name: row.state for name, row in feed.rows_of().items()}
    assert states == dict.fromkeys([one.name for one in tables], TableState.BLOCKED)
    for one in tables:
        (kept,) = feed.replicator().log.bad_records(one.name)
        assert "EVT001" in kept.reason


def test_a_file_that_is_gone_before_it_is_read_is_a_hole_for_every_table(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(9))
    feed = scene(tmp_path, spark, one)
    feed.green()
    write("2.jsonl", one.next(3))
    write("3.jsonl", one.rest())

    def remove(task: str) -> None:
        if task == "extract":
            (tmp_path / "events" / "2.jsonl").unlink()

    feed.run(between=remove)
    (hole,) = feed.replicator().log.manifest(3).holes
    assert (hole.kind, hole.table) == ("expired", one.name)
    assert "1 files were removed" in hole.detail
    road = feed.run()
    assert any("LOG004" in said for said in road.problems), road.problems
