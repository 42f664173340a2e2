"""Messages of tables whose names have dots: table ``b.c`` of ``a`` and table ``c`` of ``a.b`` share a topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import (
    CopiedTable,
    DecoderSettings,
    DecodesMany,
    Message,
)
from airflow_cdc_provider.connectors.decoders.common.saved_messages import decode_file
from airflow_cdc_provider.connectors.decoders.debezium.statements import read_statements
from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.blocks import unpacked
from tests.connectors.formats.golden import as_json, decoder
from tests.connectors.formats.test_format_contract import GOLDENS

TWINS = {'a."b.c"': ("a", "b.c"), '"a.b".c': ("a.b", "c")}
COLUMNS = (Column("id", LogicalType(Kind.INT64), False, "int64"), Column("v", LogicalType(Kind.TEXT), True, "string"))
FIELDS = [{"field": "id", "type": "int64", "optional": False}, {"field": "v", "type": "string", "optional": True}]
ROW = {"type": "struct", "optional": True, "fields": FIELDS}


def schema(table: str) -> TableSchema:
    return TableSchema(table, COLUMNS, ("id",))


def known(*tables: str, **options: Any) -> DecoderSettings:
    return DecoderSettings(1, {name: CopiedTable(TableRule(name), schema(name)) for name in tables}, options)


def change(table: str, number: int) -> Message:
    """As a connector for PostgreSQL writes it."""
    namespace, name = TWINS[table]
    source = {
        "connector": "postgresql", "db": "d", "schema": namespace, "table": name, "lsn": 100 + number,
        "txId": number, "ts_ms": 1, "snapshot": "false", "sequence": f'["{99 + number}","{100 + number}"]',
    }  # fmt: skip
    envelope = {"before": None, "after": {"id": number, "v": table}, "source": source, "op": "c", "transaction": None}
    fields = [{**ROW, "field": "before"}, {**ROW, "field": "after"}]
    value = {"schema": {"type": "struct", "fields": fields}, "payload": envelope}
    key = {"schema": {"type": "struct", "fields": FIELDS[:1]}, "payload": {"id": number}}
    return Message(as_json(value), as_json(key), (), "p.a.b.c", "p.a.b.c/0", number)


def decoded(kind: str, settings: DecoderSettings, messages: list[Message]) -> list[ChangeRecord]:
    made = decoder(kind, settings)
    assert isinstance(made, DecodesMany)
    many = [*made.decode_many(messages[:10]), *made.decode_many(messages[10:])]
    found = [item for item in unpacked(many) if isinstance(item, ChangeRecord)]
    alone = [item for one in messages for item in decoder(kind, settings).decode(one) if isinstance(item, ChangeRecord)]
    assert sorted(found, key=lambda one: one.order_key) == sorted(alone, key=lambda one: one.order_key)
    return alone


def test_changes_of_both_in_one_topic_are_kept_apart() -> None:
    messages = [change([*TWINS][number % 3 % 2], number) for number in range(90)]
    records = decoded("debezium", known(*TWINS, topic_prefix="p"), messages)
    assert len(records) == 90
    assert all(json.loads(record.after or "")["v"] == record.table for record in records)


def test_a_message_that_cannot_be_decoded_belongs_to_the_only_table_of_its_topic() -> None:
    broken = Message(b"{", b"{", (), "p.a.b.c", "p.a.b.c/0", 1)
    for tables in (['a."b.c"'], ['"a.b".c'], ["a.b.c"]):
        assert [one.table for one in decoded("debezium", known(*tables, topic_prefix="p"), [broken])] == tables
    assert [one.table for one in decoded("debezium", known(*TWINS, topic_prefix="p"), [broken])] == [""]


def test_an_unwrapped_row_of_one_of_two_tables_is_no_row_of_either() -> None:
    row = Message(b'{"id": 1, "v": "x"}', b'{"id": 1}', (), "p.a.b.c", "p.a.b.c/0", 1)
    options = {"topic_prefix": "p", "unwrapped": True}
    (record,) = decoded("debezium", known('a."b.c"', **options), [row])
    assert (record.table, record.op) == ('a."b.c"', "upsert")
    (record,) = decoded("debezium", known(*TWINS, **options), [row])
    assert (record.table, record.op) == ("", "unreadable")


def test_statements_of_a_topic_name_the_table_with_its_parts() -> None:
    source = {"connector": "mysql", "file": "b.000001", "pos": 4, "snapshot": "false", "server_id": 1}

    def statement(ddl: str, id_: str, kind: str) -> dict[str, Any]:
        changes = [{"type": kind, "id": id_, "table": {"columns": [{"name": "id"}]}}]
        return {"source": source, "ddl": ddl, "tableChanges": changes}

    payloads = [
        statement("RENAME TABLE `x.y` TO `b.c`", '"a"."b.c"', "ALTER"),
        statement("ALTER TABLE `a.b`.c ADD n int", '"a.b"."c"', "ALTER"),
    ]
    found = [(one.table, one.previous) for one in read_statements(payloads)]
    assert found == [('a."b.c"', 'a."x.y"'), ('"a.b".c', '"a.b".c')]


@pytest.mark.parametrize("source", ["postgresql", "mysql"])
def test_events_of_datastream_name_the_table_with_its_parts(source: str) -> None:
    golden = next(
        one for one in GOLDENS["datastream"] if source in (one.message.value or b"").decode("utf-8", "replace")
    )
    event = json.loads(golden.message.value or b"")
    for table, (namespace, name) in TWINS.items():
        field = "schema" if source == "postgresql" else "database"
        event["source_metadata"] |= {field: namespace, "table": name}
        message = Message(json.dumps(event).encode(), topic="f.jsonl", channel="f.jsonl")
        items = decoder("datastream", known(*TWINS)).decode(message)
        assert [item.table for item in items if isinstance(item, ChangeRecord)] == [table]


def test_a_path_of_ydb_is_one_part() -> None:
    body = {"update": {"v": "x"}, "key": [1], "ts": [1, 2]}
    message = Message(json.dumps(body).encode(), None, (), "/db/a.b/c/feed", "/db/a.b/c/feed/0", 1)
    (record,) = decoded("ydb", known('"db/a.b/c"', "db/a.b/c"), [message])
    assert record.table == '"db/a.b/c"'


def test_files_of_both_are_read_as_two_tables(tmp_path: Path) -> None:
    lines = [
        {
            "topic": one.topic,
            "offset": one.offset,
            "key": json.loads(one.key or b""),
            "value": json.loads(one.value or b""),
        }
        for one in (change(table, number) for number, table in enumerate(TWINS))
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    options = {"format": "debezium", "location": str(tmp_path), "topic_prefix": "p"}
    source = FilesSource(Source("files", "", options=options), ConnectionInfo(), "r")
    assert [one.table for one in source.tables()] == sorted(TWINS)


@pytest.mark.parametrize("table", ['a."b.c"', "a.t"])
def test_a_saved_row_without_a_topic_is_one_of_the_table_in_the_schema_file(table: str) -> None:
    options = {"unwrapped": True}
    items = [*decode_file("debezium", "rows.jsonl", b'{"id": 1, "v": "x"}', schema(table).plain(), options)]
    assert [item.table for item in items if isinstance(item, ChangeRecord)] == [table]
