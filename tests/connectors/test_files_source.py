"""A folder of event files: new files, read files, removed files, and the position behind them."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import reader, writer

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, StreamItem
from airflow_cdc_provider.connectors.transports.files.folder import File
from airflow_cdc_provider.connectors.transports.files.lines import decompress, split_lines
from airflow_cdc_provider.connectors.transports.files.reading import read_head
from airflow_cdc_provider.connectors.transports.files.sampling import sample_files
from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Source, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from tests.blocks import unpacked as with_records
from tests.connectors.formats import avro_writer, datastream_messages
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator

SETUP = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
HOUR_S = 3600


def line(message: Message) -> str:
    topic, _, partition = message.channel.rpartition("/")
    body = {"topic": topic, "partition": int(partition), "offset": message.offset, "headers": dict(message.headers)}
    body["headers"] = {name: text and text.decode() for name, text in message.headers}
    return json.dumps(
        {
            **body,
            "key": None if message.key is None else json.loads(message.key),
            "value": None if message.value is None else json.loads(message.value),
        }
    )


def messages(transactions: int = 8) -> list[Message]:
    history = Simulator(Random("files"), moves=True, late_check=False).history(transactions)
    return list(DebeziumEncoder(SETUP, Random(1)).messages(history))


class Feed:
    """A folder of files that are old enough to be read."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = folder
        self.options: dict[str, object] = {"format": "debezium", "location": str(folder), **options}
        if self.options["format"] == "debezium":
            self.options["topic_prefix"] = "p"

    @property
    def source(self) -> FilesSource:
        """A new one, as in each process."""
        return FilesSource(Source("files", "", options=self.options), ConnectionInfo(), "shop")

    def write(self, path: str, content: str | bytes, age_s: float = HOUR_S) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        moment = time.time() - age_s
        os.utime(file, (moment, moment))

    def tasks(self) -> list[TableTask]:
        return [
            TableTask(one.table, "t", one, TableRule(one.table), "", TableState.PENDING) for one in self.source.tables()
        ]

    def window(self, lo: Position, tasks: Sequence[TableTask]) -> tuple[list[StreamItem], Position]:
        """The items of a window that begins at ``lo``, and its end."""
        status = self.source.status(lo, [task.table for task in tasks])
        if not status.has_changes:
            return [], lo
        items = [
            item
            for split in self.source.splits(lo, status.limit)
            for item in with_records(self.source.read(split, tasks, 1))
        ]
        ends = {json.dumps(dict(item.position)) for item in items if isinstance(item, Boundary)}
        (end,) = ends
        return items, json.loads(end)

    def everything(self) -> list[StreamItem]:
        items, _ = self.window(self.source.open_stream([]), self.tasks())
        return items


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    folder = tmp_path / "events"
    folder.mkdir()
    return Feed(folder)


def event_ids(items: Sequence[StreamItem]) -> list[str]:
    return [item.event_id for item in items if isinstance(item, ChangeRecord)]


def test_the_first_lines_show_which_tables_there_are(feed: Feed) -> None:
    feed.write("a/1.jsonl", "\n".join(map(line, messages())))
    (schema,) = feed.source.tables()
    assert (schema.table, schema.key, schema.names) == ("d.t", ("id",), ("id", "name", "amount", "at", "wide"))


@pytest.mark.parametrize(
    "path",
    [
        "{table}/2026/11/{at:02d}/10/5d7bcd0a9f86d081_mysql-cdc-binlog_-{at}_0_{at}.avro",
        "2026-11-{at:02d}/{table}/{at}.jsonl",
        "topics/srv.d.{table}/partition=0/srv.d.{table}+0+{at:010d}.jsonl",
        "table={table}/dt=202611{at:02d}/6f1c9e4a-77aa-4b1e-9c3d-00000000{at:04d}.jsonl",
        "{table}rows-202611{at:02d}T101500Z-9f86d081884c7d659a2feaa0c55ad0{at:02d}.jsonl",
    ],
)
def test_files_of_each_table_are_sampled_whatever_the_layout(path: str) -> None:
    tables = [*(f"t{number}" for number in range(120)), "orders_2025", "orders_2026"]
    files = [File(path.format(table=table, at=at), 1, at, "") for at in (1, 2, 3) for table in tables]
    assert {*sample_files(files)} == {file for file in files if file.modified_ms != 2}


def test_of_very_many_kinds_of_files_the_latest_are_sampled() -> None:
    files = [File(f"run-{number}x/{name}.jsonl", 1, number, "") for number in range(3_000) for name in "ab"]
    assert min(file.modified_ms for file in sample_files(files)) == 2_500


def test_a_feed_without_rows_is_refused_with_one_that_has_rows(feed: Feed, tmp_path: Path) -> None:
    file = tmp_path / "schemas.json"
    columns = (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT)))
    file.write_text(json.dumps([to_plain(TableSchema("shop/orders", columns, ("id",)))]))
    keys = Feed(feed.folder, format="ydb", schemas=str(file), table="shop/orders")
    keys.write("1.jsonl", '{"key":[1],"update":{},"ts":[1,1]}\n{"key":[2],"erase":{},"ts":[2,1]}')
    (problem,) = keys.source.check(keys.tasks())
    assert (problem.code, problem.where) == ("SRC077", "shop/orders")
    assert "ALTER TABLE `shop/orders` ADD CHANGEFEED" in problem.do
    assert keys.source.check([]) == [], "only what is copied"
    keys.options["mode"] = "UPDATES"
    assert keys.source.check(keys.tasks()) == [], "a change that names no column"


def test_tables_whose_messages_have_no_schema_must_be_declared(feed: Feed, tmp_path: Path) -> None:
    bare = ConnectorSetup("mysql", schemas=False, transactions=True, headers=True)
    history = Simulator(Random("files"), moves=True, late_check=False).history(3)
    feed.write("1.jsonl", "\n".join(map(line, DebeziumEncoder(bare, Random(1)).messages(history))))
    assert feed.source.tables() == []
    (problem,) = feed.source.check([])
    assert (problem.code, problem.where) == ("SRC071", "d.t")

    file = tmp_path / "schemas.json"
    file.write_text(json.dumps([to_plain(bare.table)]))
    declared = Feed(feed.folder, schemas=str(file))
    assert declared.source.tables() == [bare.table]
    assert event_ids(declared.everything())
    file.write_text("{}")
    with pytest.raises(CheckFailed, match="SRC070"):
        declared.source.tables()


def test_a_file_is_read_once_and_a_late_file_in_an_old_folder_is_found(feed: Feed) -> None:
    lines = list(map(line, messages()))
    feed.write("2026/01/b.jsonl", "\n".join(lines[:6]), age_s=600)
    tasks, lo = feed.tasks(), feed.source.open_stream([])
    first, lo = feed.window(lo, tasks)
    assert event_ids(first)
    assert feed.window(lo, tasks) == ([], lo)
    feed.write("2025/12/a.jsonl", "\n".join(lines[6:9]), age_s=900)
    late, lo = feed.window(lo, tasks)
    assert event_ids(late)
    assert not set(event_ids(first)) & set(event_ids(late))
    assert feed.window(lo, tasks) == ([], lo)


def test_a_growing_file_is_read_once_it_is_stable(feed: Feed) -> None:
    lines = list(map(line, messages()))
    feed.write("1.jsonl", "\n".join(lines))
    tasks, lo = feed.tasks(), feed.source.open_stream([])
    feed.write("2.jsonl", "\n".join(lines), age_s=1)
    _, lo = feed.window(lo, tasks)
    assert not feed.source.status(lo, []).has_changes
    os.utime(feed.folder / "2.jsonl", (time.time() - 61,) * 2)
    assert feed.source.status(lo, []).has_changes


def test_a_rewritten_file_is_another_file(feed: Feed) -> None:
    feed.write("1.jsonl", "\n".join(map(line, messages())))
    tasks, lo = feed.tasks(), feed.source.open_stream([])
    _, lo = feed.window(lo, tasks)
    feed.write("1.jsonl", "\n".join(map(line, messages(9))), age_s=300)
    again, _ = feed.window(lo, tasks)
    assert event_ids(again)


def test_the_list_of_read_files_stays_small(feed: Feed) -> None:
    one = line(messages()[0])
    for number in range(300):
        feed.write(f"{number:04d}.jsonl", one, age_s=HOUR_S * (400 - number))
    tasks, lo = feed.tasks(), feed.source.open_stream([])
    items, hi = feed.window(lo, tasks)
    assert len(event_ids(items)) == 300
    assert len(hi["files"]) < 60, "only the files of the last hour"
    assert feed.window(hi, tasks) == ([], hi)


def test_a_file_removed_before_it_is_read_leaves_a_hole(feed: Feed) -> None:
    lines = list(map(line, messages()))
    feed.write("1.jsonl", "\n".join(lines[:5]))
    feed.write("2.jsonl", "\n".join(lines[5:]))
    tasks, lo = feed.tasks(), feed.source.open_stream([])
    limit = feed.source.status(lo, []).limit
    (feed.folder / "2.jsonl").unlink()
    (split,) = feed.source.splits(lo, limit)
    hole, *_, end = feed.source.read(split, tasks, 1)
    assert isinstance(hole, HoleFound) and "1 files were removed" in hole.detail
    assert isinstance(end, Boundary)
    (feed.folder / "1.jsonl").unlink()
    hole = next(item for item in feed.source.read(split, tasks, 1) if isinstance(item, HoleFound))


def test_compressed_lines_and_parquet_give_the_records_of_lines(feed: Feed) -> None:
    sent = messages()
    feed.write("1.jsonl", "\n".join(map(line, sent)))
    plain = [item for item in feed.everything() if isinstance(item, ChangeRecord)]
    feed.write("1.jsonl", gzip.compress("\n".join(map(line, sent)).encode()))
    assert [item for item in feed.everything() if isinstance(item, ChangeRecord)] == plain
    table = pa.table({"key": [one.key for one in sent], "value": [one.value for one in sent]})
    pq.write_table(table, feed.folder / "1.jsonl")
    os.utime(feed.folder / "1.jsonl", (time.time() - HOUR_S,) * 2)
    packed = [item for item in feed.everything() if isinstance(item, ChangeRecord)]
    assert [one.order_key for one in packed] == [one.order_key for one in plain]


def test_the_readable_part_of_a_truncated_compressed_file_is_read(feed: Feed) -> None:
    sent = messages(40)
    packed = gzip.compress("\n".join(map(line, sent)).encode())
    feed.write("1.jsonl.gz", gzip.compress((line(sent[0]) + "\n").encode()) + packed)
    whole = [item for item in feed.everything() if isinstance(item, ChangeRecord)]
    assert len({one.event_id for one in whole}) < len(whole), "two packed files, one behind the other"
    feed.write("1.jsonl.gz", packed[: len(packed) // 2])
    found = [item for item in feed.everything() if isinstance(item, ChangeRecord)]
    (bad,) = [one for one in found if one.op == Operation.UNREADABLE]
    good = [one for one in found if one is not bad]
    assert good and all(one in whole for one in good)


@pytest.mark.parametrize("size", [2, 7, 4096])
def test_lines_are_complete_however_the_file_is_cut_into_blocks(size: int) -> None:
    lines = [b"a" * number for number in range(60)]
    content = b"\n".join(lines)
    for data in (content, gzip.compress(content)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(split_lines(decompress(pieces))) == lines


def test_avro_files_of_datastream_are_read_record_by_record(tmp_path: Path) -> None:
    feed = Feed(tmp_path, format="datastream")
    feed.write("s_t/2026/01/f.avro", avro_writer.file(datastream_messages.PLAIN, datastream_messages.OUT_OF_ORDER))
    assert [item.key for item in feed.everything() if isinstance(item, ChangeRecord)] == ["[1]", "[2]", "[3]"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_only_the_first_block_of_an_avro_file_is_sampled(feed: Feed, pack: Callable[[bytes], bytes]) -> None:
    whole = BytesIO()
    plain = {"type": "record", "name": "row", "fields": [{"name": "x", "type": "bytes"}]}
    rows = [{"x": Random(number).randbytes(1000)} for number in range(4000)]
    writer(whole, plain, rows, sync_interval=64_000)
    feed.write("f.avro", pack(whole.getvalue()))
    (file,) = feed.source.folder.files()
    (head,) = read_head(feed.source.folder, file, whole_avro=True)
    assert head.value and whole.getvalue().startswith(head.value)
    assert [row["x"] for row in reader(BytesIO(head.value))] == [row["x"] for row in rows[:64]]
    assert len(read_head(feed.source.folder, file, whole_avro=False)) == 50


@pytest.mark.parametrize("content", [b"{", b"\x1f\x8bnot packed", b"PAR1 no parquet", b"Obj\x01"])
def test_an_unreadable_file_is_a_bad_record_of_every_table(feed: Feed, content: bytes) -> None:
    feed.write("1.jsonl", "\n".join(map(line, messages())))
    (task,) = feed.tasks()
    other = replace(task, table="d.u", schema=replace(task.schema, table="d.u"))
    feed.write("2.jsonl", content)
    items, _ = feed.window(feed.source.open_stream([]), [task, other])
    bad = [item for item in items if isinstance(item, ChangeRecord) and item.op == Operation.UNREADABLE]
    assert sorted(one.table for one in bad) == ["d.t", "d.u"]
    assert feed.source.reread(bad[0], task, task.schema) == [bad[0]]


def test_marker_files_and_unfinished_files_are_ignored(feed: Feed) -> None:
    for path in ("_SUCCESS", "a/.part.jsonl", "_tmp/x.jsonl"):
        feed.write(path, "{")
    assert not feed.source.status(feed.source.open_stream([]), []).has_changes


def test_definitions_that_a_feed_of_files_cannot_satisfy_are_refused(feed: Feed) -> None:
    feed.write("1.jsonl", "\n".join(map(line, messages())))
    (task,) = feed.tasks()
    choosing = replace(task, rule=replace(task.rule, where=(Condition("id", Comparison.EQUAL, "x"),)))
    keyless = replace(task, schema=replace(task.schema, key=()))
    assert [one.code for one in feed.source.check([choosing, keyless])] == ["SRC072", "SRC073"]
    with pytest.raises(CheckFailed, match="SRC072"), feed.source.copy(choosing, 1, {}, 1):
        pass
    unwrapped = Feed(feed.folder, unwrapped=True)
    assert "SRC076" in [one.code for one in unwrapped.source.check([])]


def test_an_old_oracle_stream_has_no_keys_and_is_copied_by_the_keys_of_the_yaml(tmp_path: Path) -> None:
    rows = [datastream_messages.event(datastream_messages.OLD, "oracle-cdc-logminer")]
    (tmp_path / "f.avro").write_bytes(avro_writer.file(datastream_messages.OLD_ORACLE, rows))
    os.utime(tmp_path / "f.avro", (0, 0))
    options = {"format": "datastream", "location": str(tmp_path)}
    source = FilesSource(Source("files", "", options=options), ConnectionInfo(), "shop")
    (schema,) = source.tables()
    rule = TableRule("ROOT.T")
    task = TableTask("ROOT.T", "t", schema, rule, "", TableState.PENDING)
    (problem,) = source.check([task])
    assert (problem.code, "`key: [column, …]` beside ROOT.T" in problem.do) == ("SRC073", True)
    keyed = replace(task, rule=replace(rule, key=("id",)), schema=replace(schema, key=("id",)))
    assert list(source.check([keyed])) == []
    limit = source.status(source.open_stream([]), []).limit
    items = [item for part in source.splits({}, limit) for item in with_records(source.read(part, [keyed], 1))]
    (record,) = [item for item in items if isinstance(item, ChangeRecord)]
    assert (record.key, record.warnings) == ("[1]", ())


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"SRC074.*nowhere"):
        Feed(tmp_path / "nowhere").source.status({}, [])


def test_a_copy_is_empty_and_its_anchor_is_before_the_first_file(feed: Feed) -> None:
    feed.write("1.jsonl", "\n".join(map(line, messages())))
    (task,) = feed.tasks()
    start = feed.source.open_stream([])
    _, end = feed.window(start, [task])
    assert feed.source.contains_all_after(start, end, "d.t")
    assert not feed.source.contains_all_after(end, end, "d.t")
    with feed.source.copy(task, 3, start, 1) as copy:
        assert (copy.floor, copy.rows, copy.schema) == ("00000003", 0, task.schema)
