"""The catalog of bad input, as far as decoders handle it: each row by its number.

Not here: gaps and overflows (E-16, E-17) belong to Salesforce; two messages at one position (E-18) to the fold, a
folder (E-22 and most of E-21) to the source that reads it, a row that is changed twice (E-23) to the target. No window
waits for the end of a transaction (E-19), since feeds do not promise one.
"""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import message_of
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Message
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from tests.connectors.formats import avro_writer, datastream_goldens
from tests.connectors.formats import datastream_messages as datastream
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.debezium_row_goldens import ROWS
from tests.connectors.formats.debezium_type_goldens import TYPES
from tests.connectors.formats.golden import Golden, decoder, records
from tests.connectors.formats.refusals import GOOD, decoded, pg_row, refused

KINDS = pytest.mark.parametrize("kind", FORMATS)


def refused_value(kind: str, value: bytes) -> UndecodedRecord:
    return refused(kind, GOOD[kind].message._replace(value=value), GOOD[kind].setting())


@KINDS
@pytest.mark.parametrize("cut", [0, 1, 7, -1])
def test_e01_a_message_that_is_not_json_is_unreadable_at_a_character(kind: str, cut: int) -> None:
    whole = GOOD[kind].message.value or b""
    assert refused_value(kind, whole[:cut]).reason.startswith("EVT001 not JSON at character")


@pytest.mark.parametrize("part", ["key", "value"])
def test_e01_bytes_that_need_a_schema_registry_are_reported(part: str) -> None:
    """Avro's converter writes a zero byte and four bytes of a schema id before its content."""
    message = GOOD["debezium"].message._replace(**{part: b"\0\0\0\0\x07\x02"})
    reason = refused("debezium", message, GOOD["debezium"].setting()).reason
    assert reason.startswith("EVT001") and "JsonConverter" in reason


@KINDS
def test_e01_two_objects_in_a_line_are_unreadable(kind: str) -> None:
    whole = GOOD[kind].message.value or b""
    assert refused_value(kind, whole + whole).reason.startswith("EVT001 extra data after the value")


@KINDS
@pytest.mark.parametrize(
    "wrong", [b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e99999999999999999999}', b'{"a":1,"a":1}']
)
def test_e02_json_that_only_python_accepts_is_unreadable(kind: str, wrong: bytes) -> None:
    assert refused_value(kind, wrong).reason.startswith("EVT002")


@KINDS
@pytest.mark.parametrize("wrong", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 900 + b"]" * 900])
def test_e03_deep_nesting_is_unreadable(kind: str, wrong: bytes) -> None:
    assert refused_value(kind, wrong).reason[:6] in ("EVT003", "EVT001", "EVT015")


@KINDS
def test_e04_a_message_that_is_too_large_is_unreadable(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_json, "MAX_BYTES", 20)
    assert refused_value(kind, GOOD[kind].message.value or b"").reason.startswith("EVT004")


def test_e04_the_key_of_a_message_that_is_too_large_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_json, "MAX_BYTES", 20)
    assert refused_value("debezium", GOOD["debezium"].message.value or b"").known == {"id": 1}


@pytest.mark.parametrize(("key", "known"), [([0.5], {}), (0.5, {}), ({"x": 1}, {}), ("a", {"id": "a"})])
def test_e01_an_invalid_key_is_ignored(key: Any, known: dict[str, Any]) -> None:
    message = debezium.message(None, {"id": key})._replace(value=b"no json")
    assert refused("debezium", message, ROWS[0].setting()).known == known


@pytest.mark.parametrize(
    ("row", "key"),
    [({"v": "x", "at": None}, None), ({"v": "x", "at": None}, {}), ({"id": 1, "v": "x", "at": None}, {"id": 2})],
)
def test_e05_a_key_that_is_missing_or_differs_from_the_row_is_unreadable(row: dict[str, Any], key: Any) -> None:
    assert refused("debezium", pg_row(row, key), ROWS[0].setting()).reason.startswith("EVT005")


@pytest.mark.parametrize("key", [None, 1, {"id": 1}, [], [1, 2]])
def test_e05_a_feeds_key_that_is_no_array_of_its_columns_is_unreadable(key: Any) -> None:
    message = ydb.message({"key": key, "update": {"v": "x"}})
    assert refused("ydb", message, ydb.GOLDENS[3].setting()).reason.startswith("EVT005")


def test_e05_a_key_of_another_type_is_unreadable() -> None:
    assert refused("debezium", pg_row({"id": "x", "v": None, "at": None}), ROWS[0].setting()).columns == ("id",)
    assert refused("ydb", ydb.message({"key": ["x"], "erase": {}}), ydb.GOLDENS[3].setting()).columns == ("id",)


UNKNOWN = {
    "debezium": debezium.message(debezium.envelope("x", None, {"id": 1}, debezium.pg())),
    "ydb": ydb.message({"key": [1], "upsert": {}}),
    "datastream": datastream.line(datastream.event(datastream.mysql("MERGE", False))),
}


@KINDS
def test_e06_an_unknown_operation_is_unreadable(kind: str) -> None:
    assert refused(kind, UNKNOWN[kind], GOOD[kind].setting()).reason.startswith("EVT006")


@pytest.mark.parametrize(
    "members",
    [
        {"update": {}, "erase": {}},
        {"update": {}, "reset": {}},
        {"erase": {"v": "x"}},
        {"erase": {}, "newImage": {"v": "x"}},
        {"update": {"v": "x"}, "newImage": {"v": "x"}},
    ],
)
def test_e07_e08_a_contradictory_message_is_unreadable(members: dict[str, Any]) -> None:
    what = refused("ydb", ydb.message({"key": [1], **members}), ydb.GOLDENS[3].setting())
    assert what.reason.startswith("EVT007")


@pytest.mark.parametrize(
    ("op", "before", "after"),
    [("c", None, None), ("u", None, None), ("d", None, {"id": 1}), ("c", {"id": 1}, {"id": 1})],
)
def test_e07_an_envelope_whose_rows_do_not_fit_its_operation_is_unreadable(op: str, before: Any, after: Any) -> None:
    message = debezium.message(debezium.envelope(op, before, after, debezium.pg()), {"id": 1})
    assert refused("debezium", message, ROWS[0].setting()).reason.startswith("EVT007")


WITHOUT_POSITION = [
    *(
        pytest.param("debezium", pg_row({"id": 1, "v": "x", "at": None}, **block), ROWS[0], id=f"debezium {block}")
        for block in (
            {"lsn": None, "sequence": None},
            {"lsn": -1},
            {"lsn": "0/16B3748"},
            {"sequence": "[1]"},
            {"sequence": 5},
            {"connector": "other"},
        )
    ),
    *(
        pytest.param(
            "debezium",
            debezium.message(
                debezium.with_schema(
                    debezium.envelope("c", None, {"id": 1}, block, None), debezium.field("id", "int32")
                ),
                debezium.key_schema({"id": 1}),
            ),
            TYPES[0],
            id=f"mysql {number}",
        )
        for number, block in enumerate(
            (debezium.mysql(file=None), debezium.mysql(file="binlog"), debezium.mysql(pos="x"), debezium.mysql(row=-1))
        )
    ),
    *(
        pytest.param("ydb", ydb.message({"key": [1], "erase": {}, "ts": ts}), ydb.GOLDENS[3], id=f"ydb {ts}")
        for ts in ([], [1], [1, -1], [1, 1 << 64], ["1", 2], "x", [1, 2, 3])
    ),
    pytest.param("ydb", ydb.message({"resolved": None}), ydb.GOLDENS[3], id="ydb barrier"),
    *(
        pytest.param(
            "datastream", datastream.line(datastream.event(block)), datastream_goldens.GOLDENS[0], id=f"datastream {n}"
        )
        for n, block in enumerate(
            (
                datastream.mysql("INSERT", False, log_file=None),
                datastream.mysql("INSERT", False, log_position="x"),
                datastream.mysql("INSERT", False, log_position=-1),
            )
        )
    ),
]


@pytest.mark.parametrize(("kind", "message", "like"), WITHOUT_POSITION)
def test_e09_e10_a_row_without_a_position_is_unreadable_and_ordered_last(
    kind: str, message: Message, like: Golden
) -> None:
    (record,) = records(decoded(kind, message, like.setting()))
    what = undecoded(record)
    assert what is not None and what.reason.startswith("EVT008")
    assert record.order_key[8:24] in ("f" * 16, "f" * 10 + "0" * 6) or record.table == ""
    assert record.key is None, "its state after the message is unknown"


@pytest.mark.parametrize("method", ["mysql-cdc-binlog", "mysql-backfill-fulldump"])
@pytest.mark.parametrize(
    ("change_type", "is_deleted"),
    [("UPDATE-DELETE", False), ("DELETE", False), ("INSERT", True), ("UPDATE-INSERT", True)],
)
def test_an_event_whose_two_members_about_the_row_contradict_each_other_is_unreadable(
    change_type: str, is_deleted: bool, method: str
) -> None:
    """With one member alone, the row of a departed key would be written as if it had stayed."""
    event = datastream.event(datastream.mysql(change_type, is_deleted), method)
    what = refused("datastream", datastream.line(event), GOOD["datastream"].setting())
    assert what.reason == f"EVT007 change_type is {change_type}, and is_deleted is {str(is_deleted).lower()}"


def test_a_change_type_of_mongodb_is_refused_for_other_sources() -> None:
    message = datastream.line(datastream.event(datastream.mysql("READ", False)))
    assert refused("datastream", message, GOOD["datastream"].setting()).reason.startswith("EVT006")


@KINDS
@pytest.mark.parametrize("wrong", [b"\xff", b"\xed\xa0\x80", b"\\ud800"])
def test_e13_bytes_that_are_no_characters_are_unreadable(kind: str, wrong: bytes) -> None:
    assert refused_value(kind, b'{"a":"' + wrong + b'"}').reason.startswith("EVT011")


def test_e13_a_nul_character_in_a_text_is_kept() -> None:
    (record,) = records(decoded("ydb", ydb.message({"key": [1], "update": {"v": "a\0b"}}), ydb.GOLDENS[3].setting()))
    assert record.after == '{"id":1,"v":"a\\u0000b"}'


NEW_COLUMN = {
    "debezium": pg_row({"id": 1, "v": "x", "at": None, "new": 5}),
    "ydb": ydb.message({"key": [1], "update": {"v": "x", "new": 5}}),
    "datastream": datastream.line(
        datastream.event(datastream.mysql("INSERT", False), payload={"id": 1, "v": "x", "new": 5})
    ),
}


@KINDS
def test_e14_an_undescribed_column_makes_its_row_unreadable_with_its_known_columns(kind: str) -> None:
    (record,) = records(decoded(kind, NEW_COLUMN[kind], GOOD[kind].setting()))
    what = undecoded(record)
    assert what is not None and what.reason.startswith("EVT014")
    assert (record.key, what.columns, what.known["v"]) == ("[1]", ("new",), "x")


@KINDS
def test_e15_a_table_that_is_not_copied_is_counted(kind: str) -> None:
    setting = DecoderSettings(1, {})
    (item,) = decoded(kind, GOOD[kind].message, setting)
    assert isinstance(item, Ignored) and item.count == 1 and item.table, "with the name of its table"


@pytest.mark.parametrize("damage", ["schema", "codec", "names"])
def test_e20_an_avro_file_whose_schema_cannot_be_read_is_unreadable(damage: str) -> None:
    whole = avro_writer.file(datastream.PLAIN, datastream.OUT_OF_ORDER)
    before, after = {
        "schema": (b'"type": "record"', b'"type": "recorb"'),
        "codec": (b"\x08null", b"\x08nuII"),
        "names": (b'"long"', b'"lonG"'),
    }[damage]
    assert before in whole
    what = refused("datastream", Message(whole.replace(before, after)), DecoderSettings())
    assert what.reason.startswith("EVT014")


def test_e21_the_complete_blocks_of_a_truncated_file_are_read() -> None:
    whole = avro_writer.file(datastream.PLAIN, datastream.OUT_OF_ORDER)
    found = records(decoded("datastream", Message(whole[:-20], channel="f"), DecoderSettings()))
    assert [record.op for record in found] == [Operation.UNREADABLE], "one block without its end"
    two = whole + whole[whole.index(b"0123456789abcdef") + 16 :]
    found = records(decoded("datastream", Message(two[:-20], channel="f"), DecoderSettings()))
    assert [record.op for record in found] == [Operation.INSERT] * 3 + [Operation.UNREADABLE]
    assert found[-1].position == '{"channel":"f","offset":3}'


def test_e21_a_file_without_records_is_counted_as_no_message() -> None:
    assert decoded("datastream", Message(avro_writer.file(datastream.PLAIN, [])), DecoderSettings()) == [Ignored(0)]


@pytest.mark.parametrize("kind", ["debezium", "datastream"])
def test_e24_a_time_one_year_ahead_is_accepted(kind: str) -> None:
    ahead = 1_900_000_000_000
    message = {
        "debezium": pg_row({"id": 1, "v": "x", "at": None}, ts_us=ahead * 1000),
        "datastream": datastream.line(datastream.event(datastream.mysql("INSERT", False), source_timestamp=ahead)),
    }[kind]
    (record,) = records(decoded(kind, message, GOOD[kind].setting()))
    assert isinstance(record, ChangeRecord) and record.commit_ts is not None and record.commit_ts.year == 2030


def test_e05_an_unreadable_half_of_a_key_change_keeps_its_link() -> None:
    message = pg_row({"id": 2, "v": debezium.PLACEHOLDER, "at": "x"}, {"id": 2})
    (record,) = records(decoded("debezium", message, ROWS[0].setting()))
    assert (record.op, record.key, record.phase) == (Operation.UNREADABLE, "[2]", 1)
    assert record.link_id == ROWS[0].records[0]["link_id"], "the link of the departing half"


def test_one_record_of_an_avro_file_is_kept_with_its_schema() -> None:
    """The bytes of the record are decoded again with the schema beside them."""
    good, bad = datastream.OUT_OF_ORDER[0], {**datastream.OUT_OF_ORDER[1], "uuid": None}
    setting = DecoderSettings()
    whole = Message(avro_writer.file(datastream.PLAIN, [good, bad]), topic="f", channel="f")
    good_record, bad_record = records(decoded("datastream", whole, setting))
    assert (good_record.op, bad_record.op) == (Operation.INSERT, Operation.UNREADABLE)
    kept = message_of(bad_record)
    assert kept is not None and kept.offset == 1
    assert records(decoder("datastream", setting).decode(kept)) == [bad_record]
