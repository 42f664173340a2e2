"""A folder of event files, end to end: empty copy, windows, Delta. The copies must equal the simulated source."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Columns, OnBadRecord, OnUnrepresentable, Source
from airflow_cdc_provider.core.table.states import TableState
from tests.connectors.formats.debezium_encoder import ConnectorSetup
from tests.model.seeds import seed
from tests.spark.pipelines.feeds.pipeline import (
    MYSQL,
    POSTGRES,
    FeedPipeline,
    SimulatedTable,
    definition,
    line,
    table,
    with_tables,
)
from tests.spark.pipelines.hidden_columns import hashed, with_hash_key

pytestmark = pytest.mark.jvm
SEED = seed()
POSITION = re.compile(rb'"file": "([^"]*)", "pos": (\d+)')
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("a/1.jsonl", messages)``: a file that has not changed for an hour."""
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


def feed_pipeline(folder: Path, spark: SparkSession, *tables: SimulatedTable, **rules: object) -> FeedPipeline:
    options = {"format": "debezium", "location": f"{folder}/events", "topic_prefix": "p.d"}
    names = [one.name for one in tables]
    return FeedPipeline(folder, spark, definition(folder, Source("files", "", options=options), names, **rules))


def test_copies_of_files_of_several_tables_equal_the_source(tmp_path: Path, spark: SparkSession, write: Write) -> None:
    tables = [table("t", f"{SEED} t"), table("u", f"{SEED} u", manner=POSTGRES)]
    for one in tables:
        write(f"{one.name}/0.jsonl", one.next(3))
    feed = feed_pipeline(tmp_path, spark, *tables)
    feed.run_successfully()
    for number in range(1, 4):
        for one in tables:
            write(f"{one.name}/{number}.jsonl", one.next(len(one.messages) // 5))
        write(f"both/{number}.jsonl", [message for one in tables for message in one.next(2)])
        feed.run_successfully()
    for one in tables:
        write(f"{one.name}/0.late.jsonl", one.rest())
    feed.run_successfully()
    assert list(feed.differences(*tables)) == [], f"CDC_SEED={SEED}"
    assert set(feed.run_successfully().states) == {"open_window", "close_window"}, "no changes: no Spark"
    assert {row.state for row in feed.rows_of().values()} == {TableState.REPLICATING}


def test_a_first_copy_after_a_failure_precedes_the_windows_read_meanwhile(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(9))
    feed = feed_pipeline(tmp_path, spark, one)
    assert not feed.run(leave_out=["snapshot"]).green
    write("2.jsonl", one.rest())
    feed.run_successfully()
    assert feed.replicator().log.manifest(2).tables[one.name].rows, "the window was read without a copy"
    feed.run_successfully()
    assert list(feed.differences(one)) == []


def test_a_table_that_is_added_later_is_refused_and_the_others_continue(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    first, later = table("t", f"{SEED} t"), table("u", f"{SEED} u")
    write("1.jsonl", [*first.next(9), *later.next(9)])
    feed = feed_pipeline(tmp_path, spark, first)
    feed.run_successfully()
    write("2.jsonl", [*first.rest(), *later.rest()])
    both = with_tables(feed, first, later)
    dag_run = both.run()
    assert any("CPY006" in problem or "from its beginning" in problem for problem in dag_run.problems), dag_run.problems
    assert list(both.differences(first)) == []


def test_a_resync_is_refused_where_the_log_was_read_by_other_settings(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    """The feed is not read again: the table would be empty, and stay so."""
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(20))
    feed = feed_pipeline(tmp_path, spark, one)
    feed.run_successfully()
    write("2.jsonl", one.rest())
    feed.run_successfully()
    rules = tuple(replace(rule, on_unrepresentable=OnUnrepresentable.SET_NULL) for rule in feed.definition.tables)
    feed.definition = replace(feed.definition, tables=rules)
    feed.record_command(CommandKind.RESYNC, one.name, approve_deletes=True)
    refused = feed.run()
    assert any("CPY006" in line and "other settings" in line for line in refused.problems), refused.problems
    assert list(feed.differences(one)) == []


@pytest.mark.nightly
def test_a_resync_takes_the_table_from_the_head_of_the_log(tmp_path: Path, spark: SparkSession, write: Write) -> None:
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(20))
    feed = feed_pipeline(tmp_path, spark, one)
    feed.run_successfully()
    write("2.jsonl", one.rest())
    feed.run_successfully()
    feed.record_command(CommandKind.RESYNC, one.name)
    refused = feed.run()
    assert any("until all changes have been applied again" in problem for problem in refused.problems), refused.problems
    assert list(feed.differences(one)) == []
    replicator = feed.replicator()
    location = replicator.targets.only.locate(replicator.targets.table_name(one.name))
    spark.sql(f"DELETE FROM delta.`{location}`")
    feed.record_command(CommandKind.RESYNC, one.name, approve_deletes=True)
    feed.run()
    feed.run_successfully()
    assert list(feed.differences(one)) == []


def test_a_line_of_no_table_stops_every_table_and_is_not_lost(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    tables = [table("t", f"{SEED} t"), table("u", f"{SEED} u")]
    for one in tables:
        write(f"{one.name}.jsonl", one.next(9))
    feed = feed_pipeline(tmp_path, spark, *tables, on_bad_record=OnBadRecord.QUARANTINE)
    feed.run_successfully()
    write("broken.jsonl", b'{"op": ')
    for one in tables:
        write(f"{one.name}2.jsonl", one.rest())
    feed.run()
    states = {name: row.state for name, row in feed.rows_of().items()}
    assert states == dict.fromkeys([one.name for one in tables], TableState.BLOCKED)
    for one in tables:
        (kept,) = feed.replicator().log.bad_records(one.name)
        assert "EVT001" in kept.reason


def test_a_file_that_is_deleted_before_it_is_read_is_a_hole_for_every_table(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    one = table("t", f"{SEED} t")
    write("1.jsonl", one.next(9))
    feed = feed_pipeline(tmp_path, spark, one)
    feed.run_successfully()
    write("2.jsonl", one.next(3))
    write("3.jsonl", one.rest())

    def remove(task: str) -> None:
        if task == "extract":
            (tmp_path / "events" / "2.jsonl").unlink()

    feed.run(between=remove)
    (hole,) = feed.replicator().log.manifest(3).holes
    assert (hole.kind, hole.table) == ("expired", one.name)
    assert "1 files were removed" in hole.detail
    dag_run = feed.run()
    assert any("LOG004" in problem for problem in dag_run.problems), dag_run.problems


@pytest.mark.parametrize(
    "manner", [pytest.param(MYSQL, marks=pytest.mark.nightly), POSTGRES], ids=["mysql", "postgresql"]
)
def test_hidden_columns_of_a_feed(
    tmp_path: Path, spark: SparkSession, write: Write, manner: ConnectorSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = table("t", f"{SEED} hidden", manner=manner)
    settings = Columns(hash=("id", "name"), rename={"name": "word"}, cast={"amount": "decimal(30,6)"})
    write("0.jsonl", one.next(3))
    feed = feed_pipeline(tmp_path, spark, one, columns=settings)
    with_hash_key(feed, monkeypatch)
    feed.run_successfully()
    write("1.jsonl", one.rest())
    feed.run_successfully()
    copied = feed.copied_rows(one.name, "id", "id", "word", "amount")
    assert copied == {
        hashed(key): {"id": hashed(key), "word": hashed(row[1]), "amount": row[2]} for key, row in one.end.items()
    }, f"CDC_SEED={SEED}"


def of_server(messages: Iterable[Message], server: str, file: str = r"\1") -> list[Message]:
    """As a connector sends them that reads this server."""
    source = rf'"file": "{file}", "gtid": "{server}:\2", "pos": \2'.encode()
    return [one._replace(value=one.value and POSITION.sub(source, one.value)) for one in messages]


def test_a_table_stops_when_its_connector_follows_another_server_to_lower_positions(
    tmp_path: Path, spark: SparkSession, write: Write
) -> None:
    one, other = table("t", f"{SEED} t"), table("u", f"{SEED} u")
    write("1.jsonl", [*of_server(one.next(40), "a"), *of_server(other.next(40), "a")])
    feed = feed_pipeline(tmp_path, spark, one, other)
    feed.run_successfully()
    write("2.jsonl", [*of_server(one.rest(), "b", "binlog.000003"), *of_server(other.rest(), "b")])
    feed.run()
    dag_run = feed.run()
    assert any("follows another server" in problem for problem in dag_run.problems), dag_run.problems
    assert {table: row.state for table, row in feed.rows_of().items()} == {
        "d.t": TableState.BLOCKED,
        "d.u": TableState.REPLICATING,
    }
    assert list(feed.differences(other)) == [], "the positions of the new server are higher"
