"""``airflow cdc decode``: saved messages of every kind of source."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors import FORMATS, SAVED, SOURCES
from airflow_cdc_provider.core.serde import to_plain
from tests.connectors import salesforce_events as org
from tests.connectors.formats import (
    avro_writer,
    datastream_goldens,
    datastream_messages,
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
    assert SAVED.keys() == (ours - {"kafka", "files"} - polled) | FORMATS.keys()


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
    path.write_bytes(avro_writer.file(datastream_messages.PLAIN, datastream_messages.OUT_OF_ORDER))
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
    path.write_text('{"key": [1]}\nno json\n')
    said = cdc("decode", "--source-type", "ydb", str(path))
    assert said.code == 65 and "CLI020" in said.err
    assert [one["op"] for one in spoken(said)] == ["unreadable", "unreadable"]
    assert "EVT006" in spoken(said)[0]["after"] and "EVT001" in spoken(said)[1]["after"]


def test_a_file_that_is_not_there_or_no_schema_is_said_so(cdc: Type, tmp_path: Path) -> None:
    here, absent = tmp_path / "here.jsonl", str(tmp_path / "absent")
    here.write_text("[]")
    assert cdc("decode", "--source-type", "ydb", absent).code == 66
    assert cdc("decode", "--source-type", "ydb", "--schema", absent, str(here)).code == 66
    assert cdc("decode", "--source-type", "nothing", str(here)).code == 78
    here.write_text('{"table": "t"}')
    assert "CLI017" in cdc("decode", "--source-type", "ydb", "--schema", str(here), str(here)).err


YDB = ("decode", "--source-type", "ydb")
DEBEZIUM = ("decode", "--source-type", "debezium")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("mode=UPDATE", ("DEF046", "did you mean 'UPDATES'?")),
        ("mod=UPDATES", ("DEF010", "did you mean 'mode'?", "mode, table")),
        ("mode=", ("DEF018", "expected text")),
    ],
)
def test_a_wrong_option_is_an_error_in_words(cdc: Type, tmp_path: Path, option: str, said: tuple[str, ...]) -> None:
    _, messages = written(tmp_path, ydb_goldens.GOLDENS[8])
    told = cdc(*YDB, "--option", option, messages)
    assert (told.code, told.out) == (64, "")
    assert all(words in told.err for words in said) and "Traceback" not in told.err


def test_a_source_type_without_options_refuses_every_one(cdc: Type, tmp_path: Path) -> None:
    (tmp_path / "slot.txt").write_text("")
    told = cdc("decode", "--source-type", "postgres", "--option", "slot=s", str(tmp_path / "slot.txt"))
    assert told.code == 64 and "CLI019" in told.err and "allowed: none" in told.err


def test_messages_of_other_tables_than_the_schema_names_are_counted(cdc: Type, tmp_path: Path) -> None:
    schema, messages = written(tmp_path, ydb_goldens.GOLDENS[8])
    with Path(messages).open("a") as more:
        for topic in ("/shop/carts/feed", "/shop/carts/feed", "/shop/users/feed"):
            more.write(json.dumps({"topic": topic, "value": {"key": [1], "update": {}}}) + "\n")
    said = cdc(*YDB, "--schema", schema, messages)
    assert (said.code, len(spoken(said))) == (65, 2)
    assert "CLI021" in said.err and "3 messages" in said.err
    assert "shop/carts (2), shop/users (1)" in said.err and "shop/orders" in said.err


def test_changes_of_a_slot_outside_of_the_schema_are_counted_by_table(cdc: Type, tmp_path: Path) -> None:
    slot, schema = tmp_path / "slot.txt", tmp_path / "schema.json"
    slot.write_text("".join(f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X} \\x{text}\n" for lsn, text in PGOUTPUT))
    schema.write_text('{"table": "public.nobody", "columns": []}')
    said = cdc("decode", "--source-type", "postgres", "--schema", str(schema), str(slot), "--json")
    (problem,) = said.body["problems"]
    assert (said.code, problem["code"]) == (65, "CLI021")
    assert said.body["other_tables"] and "public." in problem["found"]


def test_a_tombstone_is_of_no_other_table(cdc: Type, tmp_path: Path) -> None:
    schema, messages = written(tmp_path, debezium_row_goldens.ROWS[0])
    topic = debezium_row_goldens.ROWS[0].message.topic
    Path(messages).write_text(json.dumps({"topic": topic, "key": {"id": 1}, "value": None}))
    assert cdc(*DEBEZIUM, "--schema", schema, messages).code == 0


def test_the_reason_stands_at_top_level_and_once_per_reason_on_stderr(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text("no json\nnone here\n" + '{"op": 7, "source": {"connector": "nobody"}}\n')
    said = cdc(*DEBEZIUM, str(path))
    assert [one["reason"][:6] for one in spoken(said)] == ["EVT001", "EVT001", "EVT008"]
    found = [line.strip() for line in said.err.splitlines() if "found:" in line]
    assert len(found) == 2 and "2 messages cannot be decoded" in said.err
    assert all(one["reason"] in said.err for one in spoken(said))


@pytest.mark.parametrize(
    "row", [{"id": 1, "name": "x", "__op": "c"}, {"id": 1, "name": "x"}, {"id": 1, "status": "new"}]
)
def test_unwrapped_is_proposed_where_rows_look_so(cdc: Type, tmp_path: Path, row: dict[str, Any]) -> None:
    path, schema = tmp_path / "messages.jsonl", tmp_path / "schema.json"
    line = {"topic": "srv.shop.orders", "key": {"id": 1}, "value": row}
    path.write_text(json.dumps(line) + "\n")
    columns = [{"name": name, "type": {"kind": "text" if isinstance(v, str) else "int32"}} for name, v in row.items()]
    told = [one for one in columns if not one["name"].startswith("__")]
    schema.write_text(json.dumps({"table": "shop.orders", "key": ["id"], "columns": told}))
    said = cdc(*DEBEZIUM, "--schema", str(schema), str(path))
    assert said.code == 65 and "--option unwrapped=true" in said.err
    said = cdc(*DEBEZIUM, "--schema", str(schema), "--option", "unwrapped=true", str(path))
    assert (said.code, spoken(said)[-1]["op"]) == (0, "upsert")
    path.write_text(json.dumps(row) + "\n")
    said = cdc(*DEBEZIUM, "--schema", str(schema), "--option", "unwrapped=true", str(path))
    assert (said.code, spoken(said)[-1]["op"]) == (0, "upsert"), "a bare value is of the one table of the schema file"


def test_unwrapped_is_not_proposed_for_what_is_no_row(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text('{"op": "c", "before": null, "after": {"id": 1}}\n[1]\n')
    assert "--option" not in cdc(*DEBEZIUM, str(path)).err


def test_a_feed_of_ydb_without_schema_shows_keys_by_number(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    lines = [
        {"key": [7, "a"], "update": {"price": 1.5, "tags": ["x"]}, "ts": [5, 7]},
        {"key": [7, "a"], "update": {}, "newImage": {"price": 2}, "oldImage": {"price": None}},
        {"key": [8, "b"], "erase": {}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = cdc(*YDB, str(path))
    assert said.code == 0
    told = [one for one in spoken(said) if "op" in one]
    assert [(one["table"], one["op"], one["key"] or one["key_before"]) for one in told] == [
        ("feed", "upsert", '[7,"a"]'),
        ("feed", "update", '[7,"a"]'),
        ("feed", "delete", '[8,"b"]'),
    ]
    assert json.loads(told[0]["after"]) == {"key_1": 7, "key_2": "a", "price": 1.5, "tags": ["x"]}
    assert not any(one["after_complete"] or one["before_complete"] for one in told)
    assert all(one["warnings"] == ["schema_guessed"] for one in told)
    columns = {one["name"]: one["type"]["kind"] for one in spoken(said)[0]["schema"]["columns"]}
    assert columns == {"key_1": "int64", "key_2": "text", "price": "float64", "tags": "json"}


def test_a_feed_of_ydb_in_debezium_s_form_without_schema_shows_its_rows(cdc: Type, tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    value = json.loads(ydb_goldens.GOLDENS[20].message.value or b"")
    path.write_text(json.dumps({"topic": "/shop/orders/feed", "key": {"payload": {"id": 1}}, "value": value}) + "\n")
    said = cdc(*YDB, str(path))
    (told,) = [one for one in spoken(said) if "op" in one]
    assert (said.code, told["key"], json.loads(told["after"])) == (0, "[1]", {"id": 1, "v": "y"})


def test_a_folder_and_several_files_are_read_one_after_the_other(cdc: Type, tmp_path: Path) -> None:
    golden = debezium_type_goldens.TYPES[0]
    folder = tmp_path / "feed/2026"
    folder.mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "_SUCCESS", ".hidden"):
        (folder / name).write_bytes((golden.message.value or b"") + b"\n")
    (folder / "link.jsonl").symlink_to(folder / "a.jsonl")
    said = cdc(*DEBEZIUM, str(tmp_path / "feed"), str(folder / "a.jsonl"), "--json")
    assert (said.code, said.body["records"], said.body["unreadable"]) == (0, 3, 0)
    assert sum("schema" in one for one in said.body["items"]) == 1, "a schema is told once"
    assert cdc(*DEBEZIUM, str(tmp_path / "feed/2026"), str(tmp_path / "absent")).code == 66
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no message files" in cdc(*DEBEZIUM, str(empty)).err


def test_help_names_source_types_their_keys_and_the_form_of_a_schema(cdc: Type) -> None:
    said = cdc("decode", "--help")
    assert said.code == 0
    for word in (*SAVED, "unwrapped", "time_precision", "mode", "KEYS_ONLY", "timestamptz", "float64", "native"):
        assert word in said.out, word
