"""Keys in files of their own, as the bucket sinks of Kafka Connect write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.files.companions import choose_with_keys
from airflow_cdc_provider.connectors.transports.files.folder import File
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from tests.connectors.formats.complete_schemas import with_schemas
from tests.connectors.formats.connect_writer import avro_file, parquet_file
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator
from tests.connectors.test_files_source import Feed

POSTGRES = ConnectorSetup("postgresql", schemas=False, transactions=True, headers=True)
FOLDER = "topics/p.s.t/partition=0"
STEM = f"{FOLDER}/p.s.t+0+0000000000"
Write = Callable[[Any, Sequence[Any]], bytes]


def json_file(schema: Any, payloads: Sequence[Any]) -> bytes:
    return b"".join(json.dumps({"schema": schema, "payload": one}).encode() + b"\n" for one in payloads)


FILES: dict[str, Write] = {"avro": avro_file, "snappy.parquet": parquet_file, "json": json_file}


def messages() -> list[Message]:
    """Without tombstones, which sinks do not write."""
    history = Simulator(Random(3), moves=False, late_check=False).history(30)
    made = with_schemas(DebeziumEncoder(POSTGRES, Random(3)).messages(history))
    return [message for message in made if message.value is not None]


def content(write: Write, parts: Sequence[bytes | None]) -> bytes:
    """All messages have one schema."""
    parsed = [json.loads(part or b"") for part in parts]
    ((_, _),) = [(key, list(some)) for key, some in groupby(json.dumps(one["schema"]) for one in parsed)]
    return write(parsed[0]["schema"], [one["payload"] for one in parsed])


def records(feed: Feed) -> list[ChangeRecord]:
    return [item for item in feed.everything() if isinstance(item, ChangeRecord)]


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    folder = tmp_path / "events"
    folder.mkdir()
    return Feed(folder)


@pytest.mark.parametrize("extension", FILES)
def test_values_and_keys_are_read_together(feed: Feed, extension: str) -> None:
    sent = messages()
    feed.write(f"{STEM}.{extension}", content(FILES[extension], [one.value for one in sent]))
    feed.write(f"{STEM}.keys.{extension}", content(FILES[extension], [one.key for one in sent]))
    feed.write(f"{STEM}.headers.{extension}", b"anything")
    (schema,) = feed.source.tables()
    assert (schema.table, schema.key) == ("s.t", ("id",))
    found = records(feed)
    assert len(found) == len(sent) and {record.op for record in found}.isdisjoint({Operation.UNREADABLE})
    assert all(record.key or record.key_before for record in found)


@pytest.mark.parametrize(("values", "keys", "bad"), [(20, 19, 1), (19, 20, 1), (20, 3, 17)])
def test_messages_without_a_partner_are_bad_records(feed: Feed, values: int, keys: int, bad: int) -> None:
    sent = messages()
    feed.write(f"{STEM}.avro", content(avro_file, [one.value for one in sent[:values]]))
    feed.write(f"{STEM}.keys.avro", content(avro_file, [one.key for one in sent[:keys]]))
    found = [record for record in records(feed) if record.op == Operation.UNREADABLE]
    reasons = [reason.reason for record in found if (reason := undecoded(record))]
    assert len(reasons) == bad and all(reason.startswith("EVT007 the file of keys") for reason in reasons)


def test_a_file_waits_for_its_keys_where_others_have_keys(feed: Feed) -> None:
    sent = messages()
    later = f"{FOLDER}/p.s.t+0+0000000010"
    feed.write(f"{STEM}.avro", content(avro_file, [one.value for one in sent[:10]]))
    feed.write(f"{STEM}.keys.avro", content(avro_file, [one.key for one in sent[:10]]))
    feed.write(f"{later}.avro", content(avro_file, [one.value for one in sent[10:]]), age_s=600)
    tasks, start = feed.tasks(), feed.source.open_stream([])
    first, lo = feed.window(start, tasks)
    assert len([item for item in first if isinstance(item, ChangeRecord)]) == 10
    assert feed.window(lo, tasks) == ([], lo)
    feed.write(f"{later}.keys.avro", content(avro_file, [one.key for one in sent[10:]]), age_s=600)
    second, _ = feed.window(lo, tasks)
    assert len([item for item in second if isinstance(item, ChangeRecord)]) == len(sent) - 10


def test_a_file_waits_for_its_keys_no_longer_than_files_may_be_late(feed: Feed) -> None:
    sent = messages()
    feed.write(f"{STEM}.avro", content(avro_file, [one.value for one in sent[:10]]))
    feed.write(f"{STEM}.keys.avro", content(avro_file, [one.key for one in sent[:10]]))
    feed.write(f"{FOLDER}/p.s.t+0+0000000010.avro", content(avro_file, [one.value for one in sent[10:]]), age_s=3601)
    assert len(records(feed)) == len(sent)


def test_keys_are_not_read_before_they_are_stable(feed: Feed) -> None:
    sent = messages()
    feed.write(f"{STEM}.avro", content(avro_file, [one.value for one in sent]))
    feed.write(f"{STEM}.keys.avro", content(avro_file, [one.key for one in sent]), age_s=1)
    tasks, start = feed.tasks(), feed.source.open_stream([])
    assert feed.window(start, tasks) == ([], start)


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (["a.b+0+1.avro", "a.b+0+1.keys.avro", "a.b+0+1.headers.avro"], {"a.b+0+1.avro": "a.b+0+1.keys.avro"}),
        (["t+0+1.json.gz", "t+0+1.keys.json.gz"], {"t+0+1.json.gz": "t+0+1.keys.json.gz"}),
        (["t+0+1.avro", "t+0+1.keys.json"], {"t+0+1.avro": "t+0+1.keys.json"}),
        (["my.keys.json", "other.json"], {"my.keys.json": "", "other.json": ""}),
        (["keys.avro", "t.headers"], {"keys.avro": "", "t.headers": ""}),
        (["x/t.avro", "y/t.keys.avro"], {"x/t.avro": "", "y/t.keys.avro": ""}),
    ],
)
def test_files_of_keys_are_recognised_by_their_names(names: list[str], values: dict[str, str]) -> None:
    assert {file.path: file.keys for file in choose_with_keys([File(name, 1, 1, "") for name in names], list)} == values


def test_folders_without_keys_wait_for_none() -> None:
    listed = [File(name, 1, 1, "") for name in ("a/1.avro", "a/1.keys.avro", "a/2.avro", "b/1.avro", "b/2.keys.avro")]
    assert [file.path for file in choose_with_keys(listed, list) if file.awaits_keys] == ["a/2.avro"]


def test_a_key_column_may_be_called_value(feed: Feed) -> None:
    """A row with such a column is a message, except among keys."""
    sent = messages()
    value = {"type": "string", "optional": False, "field": "value"}
    key = {"type": "struct", "optional": False, "name": "p.s.t.Key", "fields": [value]}
    feed.write(f"{STEM}.avro", content(avro_file, [sent[0].value]))
    feed.write(f"{STEM}.keys.avro", avro_file(key, [{"value": "k"}]))
    (head,) = feed.source.read_heads()
    assert json.loads(head.key or b"")["payload"] == {"value": "k"}
