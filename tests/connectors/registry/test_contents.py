"""What names a registered schema, and contents in JSON Schema and Protobuf, without a registry."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from uuid import UUID

import pytest
from google.protobuf import message_factory

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Message
from airflow_cdc_provider.connectors.schema_registry.conversion import MessageConverter
from airflow_cdc_provider.connectors.schema_registry.framing import KEY, VALUE, framed, names_schema
from airflow_cdc_provider.connectors.schema_registry.json_schema import JsonSchemaReader
from airflow_cdc_provider.connectors.schema_registry.protobuf import ProtobufReader
from airflow_cdc_provider.connectors.schema_registry.protobuf_files import file_descriptor
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.log.registered_schemas import ReferencedSchema, RegisteredSchema
from tests.connectors.formats.golden import decoder, records
from tests.connectors.registry.schema_files import SchemasInMemory, offline

GUID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


def test_an_id_is_in_the_message_or_in_a_header_of_its_side() -> None:
    assert framed(b"\0\0\0\0\7abc", (), VALUE.header) == ("7", b"abc")
    assert framed(b"\1" + GUID.bytes + b"abc", (), VALUE.header) == (str(GUID), b"abc")
    headers = (("other", None), ("__value_schema_id", b"\1" + GUID.bytes + b"\0"))
    assert framed(b"abc", headers, VALUE.header) == (str(GUID), b"\0abc")
    assert framed(b"\0\0\0\0\7abc", headers, KEY.header) == ("7", b"abc")
    assert framed(b'{"a": 1}', (), VALUE.header) is None and framed(b"", (), VALUE.header) is None


@pytest.mark.parametrize("data", [b'{"schemaId":4,"payload":{"a": 1}}', b' { "schemaId" : 4 , "payload" : {"a": 1}}\n'])
def test_an_id_of_apicurios_converter_is_in_json(data: bytes) -> None:
    assert framed(data, (), VALUE.header) == ("schemaId-4", b'{"a": 1}')
    assert names_schema(Message(data)) and names_schema(Message(None, data))


@pytest.mark.parametrize(
    "data",
    [
        b'{"schemaId":4,"payload":"a"}',
        b'{"schemaId":4,"payload":null}',
        b'{"schemaId":"4","payload":{}}',
        b'{"schemaId":-4,"payload":{}}',
        b'{"schema":{},"payload":{}}',
        b'{"id":1,"schemaId":4,"payload":{}}',
        b'{"schemaId":4,"payload":{',
    ],
)
def test_other_json_names_no_schema(data: bytes) -> None:
    """Rows may have such columns; their documents are texts."""
    assert framed(data, (), VALUE.header) is None and not names_schema(Message(data))


def test_a_schema_of_another_kind_and_damaged_content_make_bad_records() -> None:
    row = b'{"schemaId":4,"payload":{"id":1}}'
    for schema in (RegisteredSchema("KCONNECT", '"string"'), RegisteredSchema("KCONNECT", "{")):
        (message,) = offline(SchemasInMemory({"schemaId-4": schema})).messages([Message(row, topic="p.s.t")])
        assert message.reason.startswith("EVT014") and message.value == row
    struct = RegisteredSchema("KCONNECT", '{"type":"struct","fields":[]}')
    damaged = Message(b'{"schemaId":4,"payload":{"id":1},"more":1}', topic="p.s.t")
    (message,) = offline(SchemasInMemory({"schemaId-4": struct})).messages([damaged])
    (record,) = records(decoder("debezium", DecoderSettings(1, None, {"topic_prefix": "p"})).decode(message))
    content = undecoded(record)
    assert content is not None and content.reason.startswith("EVT001")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\0\0\0\0\0\7abc", "eight bytes"),
        (b"\3\0" + GUID.bytes + b"abc", "AWS Glue"),
        (b"\3\5" + GUID.bytes + b"abc", "AWS Glue"),
        (b"\0\0\0", "ends within its schema id"),
        (b"\1\0\0", "ends within its schema id"),
    ],
)
def test_other_formats_and_cut_ids_are_named(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=f"EVT014 .*{reason}"):
        framed(data, (), VALUE.header)
    (message,) = offline(SchemasInMemory()).messages([Message(data, topic="p.s.t")])
    assert reason in message.reason and message.value == data


def test_without_a_registry_the_reason_names_the_key_to_add() -> None:
    message = Message(b"\0\0\0\0\7abc", topic="p.s.t")
    assert names_schema(message)
    (record,) = records(decoder("debezium", DecoderSettings(1, None, {"topic_prefix": "p"})).decode(message))
    content = undecoded(record)
    assert (record.op, record.table) == (Operation.UNREADABLE, "s.t")
    assert content is not None and "set `registry` under `source`" in content.reason


def test_a_schema_that_is_not_supported_makes_all_its_messages_bad_records() -> None:
    files = SchemasInMemory({"7": RegisteredSchema("XML", "<a/>"), "8": RegisteredSchema("AVRO", "{")})
    for number in (7, 8):
        (message,) = offline(files).messages([Message(b"\0\0\0\0" + bytes([number]) + b"abc")])
        assert message.reason.startswith("EVT014") and message.value is not None


def json_schema(properties: Any, **more: Any) -> RegisteredSchema:
    return RegisteredSchema("JSON", json.dumps({"type": "object", "title": "R", "properties": properties, **more}))


def fields(reader: JsonSchemaReader) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(reader.schema)["fields"]
    return found


def test_types_and_order_of_connect_are_restored_from_a_json_schema() -> None:
    amount = {"type": "number", "title": "Decimal", "connect.type": "bytes", "connect.parameters": {"scale": "2"}}
    reader = JsonSchemaReader(
        json_schema(
            {
                "c": {"type": "array", "items": {"type": "string"}, "connect.index": 2},
                "a": {"type": "integer", "connect.type": "int16", "connect.index": 0},
                "b": {"oneOf": [{"type": "null"}, amount], "connect.index": 1},
                "d": {"type": "object", "additionalProperties": {"type": "boolean"}, "connect.index": 3},
                "e": {"type": "number", "connect.type": "float32", "connect.index": 4},
            }
        )
    )
    assert fields(reader) == [
        {"type": "int16", "optional": False, "field": "a"},
        {"type": "bytes", "optional": True, "name": "Decimal", "parameters": {"scale": "2"}, "field": "b"},
        {"type": "array", "optional": False, "items": {"type": "string", "optional": False}, "field": "c"},
        {
            "type": "map",
            "optional": False,
            "keys": {"type": "string", "optional": False},
            "values": {"type": "boolean", "optional": False},
            "field": "d",
        },
        {"type": "float", "optional": False, "field": "e"},
    ]


def test_a_json_schema_may_refer_to_its_own_parts_and_to_other_schemas() -> None:
    inner = {"definitions": {"Money": {"type": "object", "title": "Money", "properties": {"n": {"$ref": "#/n"}}}}}
    inner["n"] = {"type": "integer"}
    outer = {"type": "object", "properties": {"a": {"$ref": "money.json#/definitions/Money"}, "b": {"$ref": "#/x"}}}
    outer["x"] = {"type": "string"}
    reference = ReferencedSchema("money.json", json.dumps(inner))
    first, second = fields(JsonSchemaReader(RegisteredSchema("JSON", json.dumps(outer), (reference,))))
    assert (first["name"], first["fields"][0]["type"], second["type"]) == ("Money", "int64", "string")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}',
        '{"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}',
        '{"type": "object", "properties": {"a": {"$ref": "missing.json"}}}',
        '{"type": "object", "properties": {"a": {"type": "what"}}}',
    ],
)
def test_a_json_schema_that_is_not_valid_or_not_supported_says_so(text: str) -> None:
    with pytest.raises(DecodeError, match="EVT014"):
        JsonSchemaReader(RegisteredSchema("JSON", text))


ROW = """syntax = "proto3";
package p;
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
message Other { int32 x = 1; }
message Row {
  int32 id = 1;
  optional string name = 2;
  confluent.type.Decimal price = 3 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];
  google.type.Date day = 4;
  google.type.TimeOfDay at = 5;
  google.protobuf.Timestamp moment = 6;
  google.protobuf.Int64Value wrapped = 7;
  repeated string words = 8;
  repeated RowEntry labels = 9;
  Mood mood = 10;
  map<string, int32> counts = 11;
  float single = 12;
  bytes raw = 13;
  enum Mood { SAD = 0; HAPPY = 1; }
  message RowEntry { string key = 1; int32 value = 2; }
  message Inner { int32 y = 1; }
}
"""


def proto(text: str, index: int, references: tuple[ReferencedSchema, ...] = ()) -> tuple[ProtobufReader, Any]:
    schema = RegisteredSchema("PROTOBUF", text, references)
    types = list(file_descriptor(schema).message_types_by_name.values())
    return ProtobufReader(schema, is_key=False), message_factory.GetMessageClass(types[index])()


def whole_row(row: Any) -> Any:
    row.words.append("w")
    row.labels.add(key="k", value=5)
    row.counts["c"] = 1
    return row


def test_values_of_protobuf_become_those_of_connect() -> None:
    reader, row = proto(ROW, 1)
    whole_row(row)
    row.price.value, row.price.scale = (-150).to_bytes(2, "big", signed=True), 2
    row.day.year, row.day.month, row.day.day = 1970, 1, 3
    row.at.hours, row.at.nanos = 1, 5_000_000
    row.moment.seconds, row.moment.nanos = -1, 999_000_000
    row.wrapped.value, row.mood, row.single, row.raw = 0, 1, 0.1, b"\0\1"
    assert json.loads(reader.read(b"\2\2" + row.SerializeToString())) == {
        "id": 0, "name": None, "price": -1.50, "day": 2, "at": 3_600_005, "moment": -1, "wrapped": 0, "words": ["w"],
        "labels": {"k": 5}, "mood": "HAPPY", "counts": {"c": 1}, "single": 0.1, "raw": "AAE=",
    }  # fmt: skip


def test_indexes_name_the_type_of_the_message() -> None:
    reader, other = proto(ROW.replace("int32 x", "optional int32 x").replace("int32 y", "optional int32 y"), 0)
    other.x = 7
    assert json.loads(reader.read(b"\0" + other.SerializeToString())) == {"x": 7}
    assert json.loads(reader.read(b"\4\2\4" + b"\x08\x05")) == {"y": 5}
    for invalid in (b"\2\x20", b"\4\2\x20", b"\x02\x01", b"\x80"):
        with pytest.raises(DecodeError, match=r"EVT0(01|14)"):
            reader.read(invalid)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: row.ClearField("words"), "words is a null or an empty array"),
        (lambda row: row.ClearField("counts"), "counts is a null or an empty array"),
        (lambda row: row.MergeFromString(b"\xf8\x07\x01"), "a field that its schema does not have"),
        (lambda row: setattr(row, "mood", 9), "a number that its enum does not have"),
        (lambda row: setattr(row.moment, "nanos", 1), "below a millisecond"),
        (lambda row: setattr(row.day, "month", 13), "a date that does not exist"),
    ],
)
def test_values_that_protobuf_leaves_open_are_bad_records(change: Any, reason: str) -> None:
    reader, row = proto(ROW, 1)
    change(whole_row(row))
    with pytest.raises(DecodeError, match=reason):
        reader.read(b"\2\2" + row.SerializeToString())


def test_a_null_and_a_zero_are_not_mixed_up_where_the_converter_does_not_mark_nulls() -> None:
    text = 'syntax = "proto3"; message Row { int32 id = 1; string name = 2; }'
    reader, row = proto(text, 0)
    row.id = 1
    with pytest.raises(DecodeError, match=r"name is null or zero or empty.*optional\.for\.nullables"):
        reader.read(b"\0" + row.SerializeToString())
    row.name = "n"
    assert json.loads(reader.read(b"\0" + row.SerializeToString())) == {"id": 1, "name": "n"}
    key = ProtobufReader(RegisteredSchema("PROTOBUF", text), is_key=True)
    assert json.loads(key.read(b"\0")) == {"id": 0, "name": ""}


def test_a_protobuf_schema_is_text_or_a_descriptor_and_may_import_others() -> None:
    money = 'syntax = "proto3"; package shop; message Money { optional int64 cents = 1; }'
    row = 'syntax = "proto3"; import "shop/money.proto"; message Row { shop.Money price = 1; }'
    compiled = file_descriptor(RegisteredSchema("PROTOBUF", money)).serialized_pb
    for text in (money, b64encode(compiled).decode()):
        reader, message = proto(row, 0, (ReferencedSchema("shop/money.proto", text),))
        message.price.cents = 5
        assert json.loads(reader.read(b"\0" + message.SerializeToString())) == {"price": {"cents": 5}}


@pytest.mark.parametrize(("name", "text"), [("../x.proto", "syntax"), ("/x.proto", "syntax"), ("x.proto", "message {")])
def test_a_protobuf_schema_that_is_not_valid_says_so(name: str, text: str) -> None:
    schema = RegisteredSchema("PROTOBUF", f'syntax = "proto3"; import "{name}";', (ReferencedSchema(name, text),))
    with pytest.raises(DecodeError, match="EVT014 the registered Protobuf schema is not valid"):
        ProtobufReader(schema, is_key=False)


def test_a_key_that_cannot_be_converted_is_the_reason_and_a_value_beside_it_is_converted() -> None:
    files = SchemasInMemory({"7": RegisteredSchema("AVRO", '"string"')})
    converter: MessageConverter = offline(files)
    (message,) = converter.messages([Message(b"\0\0\0\0\7\2a", b"\0\0\0\0\7\2")])
    assert message.reason.startswith("EVT001") and message.key == b"\0\0\0\0\7\2"
    assert message.value == b'"a"' and json.loads(message.value_schema)["type"] == "string"
