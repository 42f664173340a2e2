"""Events in files that only the number of their line or row orders: the lines of another file may be older or newer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import parse_schema, writer

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.debezium.positions import mongodb
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.connectors.formats.debezium_messages import envelope, field, key_schema, message, mysql, pg, with_schema
from tests.connectors.test_files_source import Feed

ORDERS = TableSchema(
    "shop/orders",
    (Column("id", LogicalType(Kind.INT64), False, "Uint64"), Column("v", LogicalType(Kind.TEXT), native="Utf8")),
    ("id",),
)
"""A table of YDB."""


def change(source: dict[str, Any], order: int | None = None) -> Message:
    payload = envelope("c", None, {"id": 1, "v": "a"}, source, order)
    schema = with_schema(payload, field("id", "int32"), field("v", "string"))
    return message(schema, key_schema({"id": 1}), "p.d.t", 7)


def saved(one: Message, **more: int) -> str:
    key, value = (json.loads(part or b"null") for part in (one.key, one.value))
    return json.dumps({"topic": one.topic, "partition": 0, "key": key, "value": value, **more})


def parquet(one: Message) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"topic": [one.topic], "key": [one.key], "value": [one.value]}), file)
    return file.getvalue()


def avro(one: Message) -> bytes:
    fields = [{"name": "topic", "type": "string"}, *({"name": name, "type": "bytes"} for name in ("key", "value"))]
    file = io.BytesIO()
    writer(file, parse_schema({"type": "record", "name": "m", "fields": fields}), [one._asdict()])
    return file.getvalue()


def codes(feed: Feed) -> list[str]:
    return [problem.code for problem in feed.source.check(feed.tasks())]


def unreadable(items: Iterable[object]) -> list[str]:
    records = [item for item in items if isinstance(item, ChangeRecord) and item.op == Operation.UNREADABLE]
    return [content.reason[:6] for record in records if (content := undecoded(record))]


MARIADB = mysql(connector="mariadb", db="d")
IN_TRANSACTION = change(MARIADB, 3)


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path)


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (saved(change(MARIADB)), True),
        (parquet(change(MARIADB)), True),
        (avro(change(MARIADB)), True),
        (saved(change(MARIADB), offset=7), False),
        (saved(IN_TRANSACTION), False),
        (parquet(IN_TRANSACTION), False),
        (saved(change(mysql(db="d"))), False),
        (saved(change(pg(schema="d", table="t"))), False),
        (saved(change(pg("incremental", sequence=None, schema="d", table="t"))), True),
    ],
)
def test_events_that_only_their_lines_order_are_refused(feed: Feed, content: str | bytes, refused: bool) -> None:
    feed.write("1", content)
    assert ("SRC076" in codes(feed)) is refused
    items = feed.everything()
    assert unreadable(items) == (["EVT008"] if refused else [])


def test_transactions_of_mongodb_need_their_metadata_in_files() -> None:
    source = {"ts_ms": 1700000000000, "ord": 1}
    assert mongodb(source, None, "none", None, False) == mongodb(source, None, "none", 7, False)
    in_transaction = {**source, "txnNumber": 5}
    assert mongodb(in_transaction, 3, "none", None, False).ordinal == f"{3:016x}"
    with pytest.raises(DecodeError, match="EVT008"):
        mongodb(in_transaction, None, "none", None, False)


def test_many_events_without_an_order_are_refused_one_by_one(feed: Feed) -> None:
    feed.write("1", "\n".join([saved(change(MARIADB))] * 40 + [saved(IN_TRANSACTION)] * 40))
    items = feed.everything()
    assert unreadable(items) == ["EVT008"] * 40


def test_an_event_without_an_order_that_comes_later_stops_its_table(feed: Feed) -> None:
    feed.write("1", saved(IN_TRANSACTION), 7200)
    tasks = feed.tasks()
    _, end = feed.window({}, tasks)
    feed.write("2", saved(change(MARIADB)))
    items, _ = feed.window(end, tasks)
    (record,) = [item for item in items if isinstance(item, ChangeRecord)]
    assert unreadable([record]) == ["EVT008"]
    (again,) = feed.source.reread(record, tasks[0], tasks[0].schema)
    assert again == record, "a second attempt does not forget that it was a line"


@pytest.mark.parametrize(("ts", "refused"), [({}, True), ({"ts": [0, 5]}, True), ({"ts": [1700000000000, 5]}, False)])
@pytest.mark.parametrize("number", [1, 60])
def test_changes_of_ydb_need_virtual_timestamps_in_files(
    tmp_path: Path, ts: dict[str, Any], refused: bool, number: int
) -> None:
    declared = tmp_path / "schema.json"
    declared.write_text(json.dumps(to_plain(ORDERS)))
    feed = Feed(tmp_path / "events", format="ydb", schemas=str(declared), table="shop/orders")
    line = json.dumps({"key": [1], "update": {}, "newImage": {"v": "a"}, **ts})
    feed.write("orders/1", "\n".join([line] * number))
    assert ("SRC076" in codes(feed)) is refused
    assert unreadable(feed.everything()) == (["EVT008"] * number if refused else [])


def test_a_table_of_two_databases_is_refused(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.write("eu.json", saved(change(pg(db="eu")), offset=7))
    assert codes(feed) == []
    feed.write("us/sent.json", saved(change(pg(db="us")), offset=7))
    (problem,) = feed.source.check(feed.tasks())
    assert (problem.code, problem.found) == ("SRC076", "connector srv, database eu; connector srv, database us")
