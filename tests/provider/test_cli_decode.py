"""``airflow cdc decode``: saved messages of every kind of source."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
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
from tests.provider.command_line import CommandLine, CommandResult

PGOUTPUT = json.loads((Path(__file__).parents[1] / "connectors" / "pgoutput_golden.json").read_text())["messages"]


def decoded(result: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def write_golden(path: Path, golden: Golden) -> tuple[str, str]:
    """Writes the schema and the message of a golden to files."""
    schema, messages = path / "schema.json", path / "messages.jsonl"
    schema.write_text(json.dumps(to_plain(golden.schema)))
    message = golden.message
    line = {"topic": message.topic, "partition": 0, "offset": message.offset, "key": None, "value": None}
    line |= {name: json.loads(part) for name in ("key", "value") if (part := getattr(message, name)) is not None}
    messages.write_text(json.dumps(line) + "\n\n")
    return str(schema), str(messages)


def test_every_source_of_messages_and_every_format_can_be_decoded() -> None:
    """A source that is polled, and one of change tables, has rows, and no messages."""
    ours = {kind for kind, path in SOURCES.items() if path.startswith("airflow_cdc_provider.")}
    rows = {kind for kind in ours if kind.endswith("_poll")} | {"sqlserver"}
    assert SAVED.keys() == (ours - {"kafka", "files"} - rows) | FORMATS.keys()


@pytest.mark.parametrize(
    ("kind", "golden"),
    [
        ("debezium", debezium_row_goldens.ROWS[0]),
        ("ydb", ydb_goldens.GOLDENS[0]),
        ("datastream", datastream_goldens.GOLDENS[0]),
    ],
)
def test_a_line_with_topic_key_and_offset_is_a_message(
    cdc: CommandLine, tmp_path: Path, kind: str, golden: Golden
) -> None:
    schema, messages = write_golden(tmp_path, golden)
    result = cdc("decode", "--source-type", kind, "--schema", schema, messages)
    assert (result.code, result.err) == (0, "")
    records = decoded(result)
    assert [one.get("op", "schema") for one in records] == ["schema", golden.records[0]["op"]]
    assert records[1]["order_key"] == golden.records[0]["order_key"]


def test_a_bare_line_is_a_value_and_a_packed_file_is_unpacked(cdc: CommandLine, tmp_path: Path) -> None:
    golden = debezium_type_goldens.TYPES[0]
    path = tmp_path / "messages.gz"
    path.write_bytes(gzip.compress((golden.message.value or b"") + b"\n"))
    result = cdc("decode", "--source-type", "debezium", str(path), "--json")
    assert (result.body["records"], result.body["unreadable"]) == (1, 0)
    assert result.body["items"][1]["after"] == golden.records[0]["after"]


def test_an_avro_file_is_many_records(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "f.avro"
    path.write_bytes(avro_writer.file(datastream_messages.PLAIN, datastream_messages.OUT_OF_ORDER))
    records = decoded(cdc("decode", "--source-type", "datastream", str(path)))
    assert [one.get("key") for one in records] == [None, "[1]", "[2]", "[3]"]


def test_options_of_the_source_are_given_one_by_one(cdc: CommandLine, tmp_path: Path) -> None:
    schema, messages = write_golden(tmp_path, ydb_goldens.GOLDENS[8])
    command = ("decode", "--source-type", "ydb", "--schema", schema, messages)
    assert decoded(cdc(*command, "--option", "mode=KEYS_ONLY"))[1]["refetch"] == ["*"]
    assert decoded(cdc(*command, "--option", "mode=UPDATES"))[1]["refetch"] == []
    result = cdc(*command, "--option", "mode")
    assert (result.code, "CLI019" in result.err) == (64, True)


def test_a_slot_s_messages_are_read_as_psql_prints_them(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "slot.txt"
    path.write_text("".join(f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X} \\x{text}\n" for lsn, text in PGOUTPUT))
    result = cdc("decode", "--source-type", "postgres", str(path))
    assert result.code == 0
    ops = [one["op"] for one in decoded(result) if "op" in one]
    assert ops.count("insert") == 5 and ops.count("truncate") == 2
    assert sum("transaction_end" in one for one in decoded(result)) > 0
    path.write_text("no position\n")
    assert cdc("decode", "--source-type", "postgres", str(path)).code == 64


def test_salesforce_s_events_are_read_with_their_avro_schema(cdc: CommandLine, tmp_path: Path) -> None:
    event = org.updated(Name="Analytical Engines")
    events, schema = tmp_path / "events.jsonl", tmp_path / "schema.json"
    text = {"replay_id": b64encode(event.replay_id).decode(), "payload": b64encode(event.payload).decode()}
    avro = org.SCHEMAS["account-1"]
    events.write_text(json.dumps({**text, "schema_id": event.schema_id}) + "\n")
    schema.write_text(json.dumps({"events": {"account-1": avro}, "objects": [org.DESCRIBES["Account"]]}))
    result = cdc("decode", "--source-type", "salesforce", "--schema", str(schema), str(events))
    (record,) = [one for one in decoded(result) if one.get("op") == "update"]
    assert record["table"] == "Account" and "Analytical Engines" in record["after"]
    result = cdc("decode", "--source-type", "salesforce", str(events))
    assert (result.code, "CLI017" in result.err) == (64, True)


def test_unreadable_messages_are_listed_and_the_command_fails(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text('{"key": [1]}\nno json\n')
    result = cdc("decode", "--source-type", "ydb", str(path))
    assert result.code == 65 and "CLI020" in result.err
    assert [one["op"] for one in decoded(result)] == ["unreadable", "unreadable"]
    assert "EVT006" in decoded(result)[0]["after"] and "EVT001" in decoded(result)[1]["after"]


def test_a_missing_file_or_an_invalid_schema_is_reported(cdc: CommandLine, tmp_path: Path) -> None:
    existing, absent = tmp_path / "existing.jsonl", str(tmp_path / "absent")
    existing.write_text("[]")
    assert cdc("decode", "--source-type", "ydb", absent).code == 66
    assert cdc("decode", "--source-type", "ydb", "--schema", absent, str(existing)).code == 66
    assert cdc("decode", "--source-type", "nothing", str(existing)).code == 78
    existing.write_text('{"table": "t"}')
    assert "CLI017" in cdc("decode", "--source-type", "ydb", "--schema", str(existing), str(existing)).err


YDB = ("decode", "--source-type", "ydb")
DEBEZIUM = ("decode", "--source-type", "debezium")


@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("mode=UPDATE", ("DEF046", "did you mean 'UPDATES'?")),
        ("mod=UPDATES", ("DEF010", "did you mean 'mode'?", "mode, table")),
        ("mode=", ("DEF018", "expected text")),
    ],
)
def test_a_wrong_option_is_an_error_with_a_suggestion(
    cdc: CommandLine, tmp_path: Path, option: str, texts: tuple[str, ...]
) -> None:
    _, messages = write_golden(tmp_path, ydb_goldens.GOLDENS[8])
    result = cdc(*YDB, "--option", option, messages)
    assert (result.code, result.out) == (64, "")
    assert all(text in result.err for text in texts) and "Traceback" not in result.err


def test_a_source_type_without_options_refuses_every_one(cdc: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "slot.txt").write_text("")
    result = cdc("decode", "--source-type", "postgres", "--option", "slot=s", str(tmp_path / "slot.txt"))
    assert result.code == 64 and "CLI019" in result.err and "allowed: none" in result.err


def test_messages_of_other_tables_than_the_schema_names_are_counted(cdc: CommandLine, tmp_path: Path) -> None:
    schema, messages = write_golden(tmp_path, ydb_goldens.GOLDENS[8])
    with Path(messages).open("a") as more:
        for topic in ("/shop/carts/feed", "/shop/carts/feed", "/shop/users/feed"):
            more.write(json.dumps({"topic": topic, "value": {"key": [1], "update": {}}}) + "\n")
    result = cdc(*YDB, "--schema", schema, messages)
    assert (result.code, len(decoded(result))) == (65, 2)
    assert "CLI021" in result.err and "3 messages" in result.err
    assert "shop/carts (2), shop/users (1)" in result.err and "shop/orders" in result.err


def test_changes_of_tables_outside_the_schema_are_counted_by_table(cdc: CommandLine, tmp_path: Path) -> None:
    slot, schema = tmp_path / "slot.txt", tmp_path / "schema.json"
    slot.write_text("".join(f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X} \\x{text}\n" for lsn, text in PGOUTPUT))
    schema.write_text('{"table": "public.other", "columns": []}')
    result = cdc("decode", "--source-type", "postgres", "--schema", str(schema), str(slot), "--json")
    (problem,) = result.body["problems"]
    assert (result.code, problem["code"]) == (65, "CLI021")
    assert result.body["other_tables"] and "public." in problem["found"]


def test_a_tombstone_does_not_count_as_a_message_of_another_table(cdc: CommandLine, tmp_path: Path) -> None:
    schema, messages = write_golden(tmp_path, debezium_row_goldens.ROWS[0])
    topic = debezium_row_goldens.ROWS[0].message.topic
    Path(messages).write_text(json.dumps({"topic": topic, "key": {"id": 1}, "value": None}))
    assert cdc(*DEBEZIUM, "--schema", schema, messages).code == 0


def test_each_reason_is_in_its_record_and_once_on_stderr(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text("no json\nnone here\n" + '{"op": 7, "source": {"connector": "unknown"}}\n')
    result = cdc(*DEBEZIUM, str(path))
    assert [one["reason"][:6] for one in decoded(result)] == ["EVT001", "EVT001", "EVT008"]
    found = [line.strip() for line in result.err.splitlines() if "found:" in line]
    assert len(found) == 2 and "2 messages cannot be decoded" in result.err
    assert all(one["reason"] in result.err for one in decoded(result))


@pytest.mark.parametrize(
    "row", [{"id": 1, "name": "x", "__op": "c"}, {"id": 1, "name": "x"}, {"id": 1, "status": "new"}]
)
def test_unwrapped_is_proposed_for_messages_in_the_form_of_rows(
    cdc: CommandLine, tmp_path: Path, row: dict[str, Any]
) -> None:
    path, schema = tmp_path / "messages.jsonl", tmp_path / "schema.json"
    line = {"topic": "srv.shop.orders", "key": {"id": 1}, "value": row}
    path.write_text(json.dumps(line) + "\n")
    columns = [{"name": name, "type": {"kind": "text" if isinstance(v, str) else "int32"}} for name, v in row.items()]
    source_columns = [one for one in columns if not one["name"].startswith("__")]
    schema.write_text(json.dumps({"table": "shop.orders", "key": ["id"], "columns": source_columns}))
    result = cdc(*DEBEZIUM, "--schema", str(schema), str(path))
    assert result.code == 65 and "--option unwrapped=true" in result.err
    result = cdc(*DEBEZIUM, "--schema", str(schema), "--option", "unwrapped=true", str(path))
    assert (result.code, decoded(result)[-1]["op"]) == (0, "upsert")
    path.write_text(json.dumps(row) + "\n")
    result = cdc(*DEBEZIUM, "--schema", str(schema), "--option", "unwrapped=true", str(path))
    assert (result.code, decoded(result)[-1]["op"]) == (0, "upsert"), (
        "a bare value is of the one table of the schema file"
    )


def test_unwrapped_is_not_proposed_for_other_messages(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text('{"op": "c", "before": null, "after": {"id": 1}}\n[1]\n')
    assert "--option" not in cdc(*DEBEZIUM, str(path)).err


def test_a_feed_of_ydb_without_schema_shows_keys_by_number(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    lines = [
        {"key": [7, "a"], "update": {"price": 1.5, "tags": ["x"]}, "ts": [5, 7]},
        {"key": [7, "a"], "update": {}, "newImage": {"price": 2}, "oldImage": {"price": None}},
        {"key": [8, "b"], "erase": {}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = cdc(*YDB, str(path))
    assert result.code == 0
    records = [one for one in decoded(result) if "op" in one]
    assert [(one["table"], one["op"], one["key"] or one["key_before"]) for one in records] == [
        ("feed", "upsert", '[7,"a"]'),
        ("feed", "update", '[7,"a"]'),
        ("feed", "delete", '[8,"b"]'),
    ]
    assert json.loads(records[0]["after"]) == {"key_1": 7, "key_2": "a", "price": 1.5, "tags": ["x"]}
    assert not any(one["after_complete"] or one["before_complete"] for one in records)
    assert all(one["warnings"] == ["schema_guessed"] for one in records)
    columns = {one["name"]: one["type"]["kind"] for one in decoded(result)[0]["schema"]["columns"]}
    assert columns == {"key_1": "int64", "key_2": "text", "price": "float64", "tags": "json"}


def test_a_feed_of_ydb_in_debezium_s_form_without_schema_shows_its_rows(cdc: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    value = json.loads(ydb_goldens.GOLDENS[20].message.value or b"")
    path.write_text(json.dumps({"topic": "/shop/orders/feed", "key": {"payload": {"id": 1}}, "value": value}) + "\n")
    result = cdc(*YDB, str(path))
    (records,) = [one for one in decoded(result) if "op" in one]
    assert (result.code, records["key"], json.loads(records["after"])) == (0, "[1]", {"id": 1, "v": "y"})


def test_a_folder_and_several_files_are_read_one_after_the_other(cdc: CommandLine, tmp_path: Path) -> None:
    golden = debezium_type_goldens.TYPES[0]
    folder = tmp_path / "feed/2026"
    folder.mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "_SUCCESS", ".hidden"):
        (folder / name).write_bytes((golden.message.value or b"") + b"\n")
    (folder / "link.jsonl").symlink_to(folder / "a.jsonl")
    result = cdc(*DEBEZIUM, str(tmp_path / "feed"), str(folder / "a.jsonl"), "--json")
    assert (result.code, result.body["records"], result.body["unreadable"]) == (0, 3, 0)
    assert sum("schema" in one for one in result.body["items"]) == 1, "a schema is listed once"
    assert cdc(*DEBEZIUM, str(tmp_path / "feed/2026"), str(tmp_path / "absent")).code == 66
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no message files" in cdc(*DEBEZIUM, str(empty)).err


def test_help_names_source_types_their_keys_and_the_form_of_a_schema(cdc: CommandLine) -> None:
    result = cdc("decode", "--help")
    assert result.code == 0
    for word in (*SAVED, "unwrapped", "time_precision", "mode", "KEYS_ONLY", "timestamptz", "float64", "native"):
        assert word in result.out, word


def test_messages_with_registered_schemas_are_decoded_with_a_folder_of_schemas(
    cdc: CommandLine, tmp_path: Path
) -> None:
    """The folder has the form of ``registry/`` in staging."""
    schema = {"type": "record", "name": "K", "fields": [{"name": "id", "type": "int"}]}
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "7.json").write_text(json.dumps({"kind": "AVRO", "text": json.dumps(schema)}))
    message = tmp_path / "message.bin"
    message.write_bytes(b"\0\0\0\0\7\x0a")
    options = ("--option", "unwrapped=true", "--option", "topic_prefix=p")
    command = ("decode", "--source-type", "debezium", *options, str(message))
    without = cdc(*command)
    assert without.code == 65 and "set `registry`" in without.err
    missing = cdc(*command, "--registry", str(tmp_path))
    assert missing.code == 66 and "CLI005" in missing.err and "id 7" in missing.err
    found = cdc(*command, "--registry", str(tmp_path / "registry"))
    assert (found.code, [one["after"] for one in decoded(found) if "op" in one]) == (0, ['{"id":5}'])
    (tmp_path / "registry" / "7.json").write_text("[]")
    assert "CLI022" in cdc(*command, "--registry", str(tmp_path / "registry")).err


def test_other_formats_have_no_registered_schemas(cdc: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text("{}")
    found = cdc("decode", "--source-type", "ydb", "--registry", str(tmp_path), str(tmp_path / "f.jsonl"))
    assert found.code == 64 and "CLI019" in found.err
