"""``airflow cdc decode``: saved messages of every kind of source."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors import FORMATS, SAVED, SOURCES, TRANSPORTS
from airflow_cdc_provider.core.plain import to_plain
from tests.connectors import salesforce_events as org
from tests.connectors.formats import (
    avro_writer,
    datastream_goldens,
    debezium_row_goldens,
    debezium_type_goldens,
    ydb_goldens,
)
from tests.connectors.formats.golden import Golden
from tests.provider.typed import Said

Type = Callable[..., Said]
PGOUTPUT = json.loads((Path(__file__).parents[1] / "connectors" / "pgoutput_golden.json").read_text())["messages"]


def spoken(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.out.splitlines()]


def written(path: Path, golden: Golden) -> tuple[str, str]:
    """The schema and the messages of a golden as files."""
    schema, messages = path / "schema.json", path / "messages.jsonl"
    schema.write_text(json.dumps(to_plain(golden.schema)))
    message = golden.message
    line = {"topic": message.topic, "partition": 0, "offset": message.offset, "key": None, "value": None}
    line |= {name: json.loads(part) for name in ("key", "value") if (part := getattr(message, name)) is not None}
    messages.write_text(json.dumps(line) + "\n\n")
    return str(schema), str(messages)


def test_every_source_of_messages_and_every_format_can_be_decoded() -> None:
    """A source that is polled has rows, and no messages."""
    ours = {kind for kind, place in SOURCES.items() if place.startswith("airflow_cdc_provider.")}
    polled = {kind for kind in ours if kind.endswith("_poll")}
    assert SAVED.keys() == (ours - TRANSPORTS - polled) | FORMATS.keys()


@pytest.mark.parametrize(
    ("kind", "golden"),
    [
        ("debezium", debezium_row_goldens.ROWS[0]),
        ("ydb", ydb_goldens.GOLDENS[0]),
        ("datastream", datastream_goldens.GOLDENS[0]),
    ],
)
def test_a_line_with_topic_key_and_offset_is_a_message(cdc: Type, tmp_path: Path, kind: str, golden: Golden) -> None:
    schema, messages = written(tmp_path, golden)
    said = cdc("decode", "--source-type", kind, "--schema", schema, messages)
    assert (said.code, said.err) == (0, "")
    told = spoken(said)
    assert [one.get("op", "schema") for one in told] == ["schema", golden.records[0]["op"]]
    assert told[1]["order_key"] == golden.records[0]["order_key"]


def test_a_bare_line_is_a_value_and_a_packed_file_is_unpacked(cdc: Type, tmp_path: Path) -> None:
    golden = debezium_type_goldens.TYPES[0]
    path = tmp_path / "messages.gz"
    path.write_bytes(gzip.compress((golden.message.value or b"") + b"\n"))
    said = cdc("decode", "--source-type", "debezium", str(path), "--json")
    assert (said.body["records"], said.body["unreadable"]) == (1, 0)
    assert said.body["items"][1]["after"] == golden.records[0]["after"]


def test_an_avro_file_is_many_records(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "f.avro"
    path.write_bytes(avro_writer.file(datastream_goldens.PLAIN, datastream_goldens.OUT_OF_ORDER))
    told = spoken(cdc("decode", "--source-type", "datastream", str(path)))
    assert [one.get("key") for one in told] == [None, "[1]", "[2]", "[3]"]


def test_options_of_the_source_are_given_one_by_one(cdc: Type, tmp_path: Path) -> None:
    schema, messages = written(tmp_path, ydb_goldens.GOLDENS[8])
    command = ("decode", "--source-type", "ydb", "--schema", schema, messages)
    assert spoken(cdc(*command, "--option", "mode=KEYS_ONLY"))[1]["refetch"] == ["*"]
    assert spoken(cdc(*command, "--option", "mode=UPDATES"))[1]["refetch"] == []
    said = cdc(*command, "--option", "mode")
    assert (said.code, "CLI019" in said.err) == (64, True)


def test_a_slot_s_messages_are_read_as_psql_prints_them(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "slot.txt"
    path.write_text("".join(f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X} \\x{text}\n" for lsn, text in PGOUTPUT))
    said = cdc("decode", "--source-type", "postgres", str(path))
    assert said.code == 0
    ops = [one["op"] for one in spoken(said) if "op" in one]
    assert ops.count("insert") == 5 and ops.count("truncate") == 2
    assert sum("transaction_end" in one for one in spoken(said)) > 0
    path.write_text("no place\n")
    assert cdc("decode", "--source-type", "postgres", str(path)).code == 64


def test_salesforce_s_events_are_read_with_their_avro_schema(cdc: Type, tmp_path: Path) -> None:
    event = org.updated(Name="Analytical Engines")
    events, schema = tmp_path / "events.jsonl", tmp_path / "schema.json"
    text = {"replay_id": b64encode(event.replay_id).decode(), "payload": b64encode(event.payload).decode()}
    avro = org.SCHEMAS["account-1"]
    events.write_text(json.dumps({**text, "schema_id": event.schema_id}) + "\n")
    schema.write_text(json.dumps({"events": {"account-1": avro}, "objects": [org.DESCRIBES["Account"]]}))
    said = cdc("decode", "--source-type", "salesforce", "--schema", str(schema), str(events))
    (record,) = [one for one in spoken(said) if one.get("op") == "update"]
    assert record["table"] == "Account" and "Analytical Engines" in record["after"]
    said = cdc("decode", "--source-type", "salesforce", str(events))
    assert (said.code, "CLI017" in said.err) == (64, True)


def test_what_cannot_be_read_is_told_and_makes_the_command_fail(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text('{"key": [1], "update": {}}\nno json\n')
    said = cdc("decode", "--source-type", "ydb", str(path))
    assert said.code == 65 and "CLI020" in said.err
    assert [one["op"] for one in spoken(said)] == ["unreadable", "unreadable"]
    assert "EVT014" in spoken(said)[0]["after"] and "EVT001" in spoken(said)[1]["after"]


def test_a_file_that_is_not_there_or_no_schema_is_said_so(cdc: Type, tmp_path: Path) -> None:
    here, absent = tmp_path / "here.jsonl", str(tmp_path / "absent")
    here.write_text("[]")
    assert cdc("decode", "--source-type", "ydb", absent).code == 66
    assert cdc("decode", "--source-type", "ydb", "--schema", absent, str(here)).code == 66
    assert cdc("decode", "--source-type", "nothing", str(here)).code == 78
    here.write_text('{"table": "t"}')
    assert "CLI017" in cdc("decode", "--source-type", "ydb", "--schema", str(here), str(here)).err
