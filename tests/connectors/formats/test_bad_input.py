"""The catalogue of bad input, as far as it is a decoder's matter: each row by its number.

Not here: gaps and overflows (E-16, E-17) are Salesforce's; two messages of one place (E-18) are for the fold, a folder
(E-22 and most of E-21) for the source that reads it, a row that is touched twice (E-23) for the target. No window is
held for the end of a transaction (E-19): feeds promise none.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.formats import exact_json
from airflow_cdc_provider.connectors.formats.message import DecodesMany, Item, Message, Setting, Wanted
from airflow_cdc_provider.connectors.formats.unreadable import message_of
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.changes import ChangeRecord, Operation
from airflow_cdc_provider.core.definition import TableRule
from airflow_cdc_provider.core.quarantine import Unreadable, told
from airflow_cdc_provider.core.tables import Kind, TableSchema
from tests.blocks import unpacked
from tests.connectors.formats import avro_writer
from tests.connectors.formats import datastream_goldens as datastream
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.debezium_row_goldens import ROWS
from tests.connectors.formats.debezium_type_goldens import TYPES
from tests.connectors.formats.golden import Golden, column, decoder, records
from tests.connectors.formats.judging import judge


def decoded(kind: str, message: Message, setting: Setting) -> list[Item]:
    items = decoder(kind, setting).decode(message)
    judge(message, items)
    return items


def refused(kind: str, message: Message, setting: Setting) -> Unreadable:
    """What is told of the one message that is put aside."""
    (record,) = records(decoded(kind, message, setting))
    what = told(record)
    assert what is not None, record
    return what


GOOD: dict[str, Golden] = {
    "debezium": ROWS[0],
    "ydb": ydb.GOLDENS[3],
    "datastream": datastream.GOLDENS[0],
}
KINDS = pytest.mark.parametrize("kind", FORMATS)


def sent(kind: str, value: bytes) -> Unreadable:
    return refused(kind, GOOD[kind].message._replace(value=value), GOOD[kind].setting())


@KINDS
@pytest.mark.parametrize("cut", [0, 1, 7, -1])
def test_e01_what_is_no_json_is_put_aside_with_its_place(kind: str, cut: int) -> None:
    whole = GOOD[kind].message.value or b""
    assert sent(kind, whole[:cut]).reason.startswith("EVT001 not JSON at character")


@pytest.mark.parametrize("part", ["key", "value"])
def test_e01_bytes_that_only_a_schema_registry_explains_are_named(part: str) -> None:
    """A zero and four bytes of a schema's number stand before what Avro's converter writes."""
    message = GOOD["debezium"].message._replace(**{part: b"\0\0\0\0\x07\x02"})
    reason = refused("debezium", message, GOOD["debezium"].setting()).reason
    assert reason.startswith("EVT001") and "JsonConverter" in reason


@KINDS
def test_e01_two_objects_in_a_line_are_put_aside(kind: str) -> None:
    whole = GOOD[kind].message.value or b""
    assert sent(kind, whole + whole).reason.startswith("EVT001 more behind the value")


@KINDS
@pytest.mark.parametrize(
    "wrong", [b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e99999999999999999999}', b'{"a":1,"a":1}']
)
def test_e02_what_python_alone_takes_for_json_is_put_aside(kind: str, wrong: bytes) -> None:
    assert sent(kind, wrong).reason.startswith("EVT002")


@KINDS
@pytest.mark.parametrize("wrong", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 900 + b"]" * 900])
def test_e03_depth_is_no_accident(kind: str, wrong: bytes) -> None:
    assert sent(kind, wrong).reason[:6] in ("EVT003", "EVT001", "EVT015")


@KINDS
def test_e04_what_is_too_large_is_not_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_json, "MOST_BYTES", 20)
    assert sent(kind, GOOD[kind].message.value or b"").reason.startswith("EVT004")


def test_e04_the_key_of_what_is_too_large_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_json, "MOST_BYTES", 20)
    assert sent("debezium", GOOD["debezium"].message.value or b"").known == {"id": 1}


@pytest.mark.parametrize(("key", "known"), [([0.5], {}), (0.5, {}), ({"x": 1}, {}), ("a", {"id": "a"})])
def test_e01_a_key_that_is_none_is_no_hindrance(key: Any, known: dict[str, Any]) -> None:
    message = debezium.message(None, {"id": key})._replace(value=b"no json")
    assert refused("debezium", message, ROWS[0].setting()).known == known


def pg_row(row: dict[str, Any], key: Any = None, **source: Any) -> Message:
    return debezium.message(debezium.envelope("c", None, row, debezium.pg(**source)), key)


@pytest.mark.parametrize(
    ("row", "key"),
    [({"v": "x", "at": None}, None), ({"v": "x", "at": None}, {}), ({"id": 1, "v": "x", "at": None}, {"id": 2})],
)
def test_e05_a_key_that_is_missing_or_another_than_the_rows_is_put_aside(row: dict[str, Any], key: Any) -> None:
    assert refused("debezium", pg_row(row, key), ROWS[0].setting()).reason.startswith("EVT005")


@pytest.mark.parametrize("key", [None, 1, {"id": 1}, [], [1, 2]])
def test_e05_a_feeds_key_that_is_no_array_of_its_columns_is_put_aside(key: Any) -> None:
    message = ydb.message({"key": key, "update": {"v": "x"}})
    assert refused("ydb", message, ydb.GOLDENS[3].setting()).reason.startswith("EVT005")


def test_e05_a_key_of_another_type_is_put_aside() -> None:
    assert refused("debezium", pg_row({"id": "x", "v": None, "at": None}), ROWS[0].setting()).columns == ("id",)
    assert refused("ydb", ydb.message({"key": ["x"], "erase": {}}), ydb.GOLDENS[3].setting()).columns == ("id",)


UNKNOWN = {
    "debezium": debezium.message(debezium.envelope("x", None, {"id": 1}, debezium.pg())),
    "ydb": ydb.message({"key": [1], "upsert": {}}),
    "datastream": datastream.line(datastream.event(datastream.mysql("MERGE", False))),
}


@KINDS
def test_e06_an_unknown_operation_is_put_aside(kind: str) -> None:
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
def test_e07_e08_what_contradicts_itself_is_put_aside(members: dict[str, Any]) -> None:
    what = refused("ydb", ydb.message({"key": [1], **members}), ydb.GOLDENS[3].setting())
    assert what.reason.startswith("EVT007")


@pytest.mark.parametrize(
    ("op", "before", "after"),
    [("c", None, None), ("u", None, None), ("d", None, {"id": 1}), ("c", {"id": 1}, {"id": 1})],
)
def test_e07_an_envelope_whose_rows_do_not_fit_its_operation_is_put_aside(op: str, before: Any, after: Any) -> None:
    message = debezium.message(debezium.envelope(op, before, after, debezium.pg()), {"id": 1})
    assert refused("debezium", message, ROWS[0].setting()).reason.startswith("EVT007")


NO_PLACE = [
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
            "datastream", datastream.line(datastream.event(block)), datastream.GOLDENS[0], id=f"datastream {n}"
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


@pytest.mark.parametrize(("kind", "message", "like"), NO_PLACE)
def test_e09_e10_a_row_without_a_place_is_put_aside_behind_everything(
    kind: str, message: Message, like: Golden
) -> None:
    (record,) = records(decoded(kind, message, like.setting()))
    what = told(record)
    assert what is not None and what.reason.startswith("EVT008")
    assert record.order_key[8:24] in ("f" * 16, "f" * 10 + "0" * 6) or record.table == ""
    assert record.key is None, "what is behind it, nobody knows"


@pytest.mark.parametrize(
    ("semantic", "kind", "value", "becomes"),
    [
        ("Timestamp", "int64", -62_135_596_800_000, "0001-01-01T00:00:00"),
        ("Timestamp", "int64", 253_402_300_799_999, "9999-12-31T23:59:59.999000"),
        ("Timestamp", "int64", 9_224_318_015_999_999, "EVT016"),
        ("MicroTimestamp", "int64", 9_223_372_036_825_200_000, "EVT016"),
        ("MicroTimestamp", "int64", -9_223_372_036_832_400_000, "EVT016"),
        ("Date", "int32", 10_000_000, "EVT016"),
        ("Date", "int32", -10_000_000, "EVT016"),
        ("MicroTimestamp", "int64", 1_709_210_096_123_456, "2024-02-29T12:34:56.123456"),
        ("NanoTimestamp", "int64", 1_709_210_096_123_456_789, "2024-02-29T12:34:56.123456"),
        ("ZonedTimestamp", "string", "2024-02-29T12:34:56.123456789Z", "2024-02-29T12:34:56.123456Z"),
        ("ZonedTimestamp", "string", "+292278994-08-17T07:12:55Z", "EVT016"),
        ("ZonedTimestamp", "string", "infinity", "EVT016"),
        ("ZonedTimestamp", "string", "-infinity", "EVT016"),
        ("ZonedTimestamp", "string", "0001-01-01T00:00:00+14:00", "EVT016"),
        ("ZonedTimestamp", "string", "2024-12-31T23:59:60Z", "EVT009"),
        ("ZonedTimestamp", "string", "2024-03-31T02:30:00", "EVT009"),
        ("ZonedTimestamp", "string", "0000-00-00T00:00:00Z", "EVT009"),
        ("Timestamp", "int64", 1.5, "EVT009"),
        ("Timestamp", "int64", "2024-02-29T12:34:56", "EVT009"),
    ],
)
def test_e11_a_time_is_kept_or_put_aside_and_what_is_below_a_microsecond_is_cut_with_a_warning(
    semantic: str, kind: str, value: Any, becomes: str
) -> None:
    field = debezium.field("t", kind, f"io.debezium.time.{semantic}")
    after = '"t":"' + str(becomes) + '"'
    golden = debezium.typed("", [field], {"t": value}, after)
    if becomes.startswith("EVT"):
        what = refused("debezium", golden.message, golden.setting())
        assert what.reason.startswith(becomes) and what.columns == ("t",) and what.known == {"id": 1}
        return
    (record,) = records(decoded("debezium", golden.message, golden.setting()))
    assert record.after == '{"id":1,' + after + "}"
    assert bool(record.warnings) == ("789" in str(value))


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        (b'"12.30"', "12.300000000"),
        (b'"-0"', "0.000000000"),
        (b"7", "7.000000000"),
        (b'"10000000000000"', None),
        (b'"1e-400"', None),
        (b'"0.0000000001"', None),
        (b'"x"', None),
        (b"true", None),
    ],
)
def test_e12_a_decimal_is_exact_or_put_aside(value: bytes, becomes: str | None) -> None:
    message = ydb.message(b'{"key":["AQI="],"update":{"d":' + value + b"}}")
    like = next(golden for golden in ydb.GOLDENS if golden.name == "every type")
    if becomes is None:
        what = refused("ydb", message, like.setting())
        assert what.reason[:6] in ("EVT010", "EVT015") and what.columns == ("d",)
        return
    (record,) = records(decoded("ydb", message, like.setting()))
    assert record.after == '{"id":"AQI=","d":"' + becomes + '"}'


@pytest.mark.parametrize(
    "value",
    [
        "12.345",
        "1E+8",
        "123456789.01",
        "1e-5000",
        "1E+5000",
        "0." + "1" * 5000,
        "1" * 4001,
        '"12.34"',
        "true",
        "[]",
        "{}",
    ],
)
def test_e12_a_decimal_told_as_a_number_has_the_digits_of_its_column(value: str) -> None:
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    like = debezium.typed("", [debezium.field("d", "bytes", f"{debezium.CONNECT}Decimal", **parameters)], {"d": 7}, "")
    message = like.message._replace(value=(like.message.value or b"").replace(b'"d":7', b'"d":' + value.encode()))
    what = refused("debezium", message, like.setting())
    assert what.reason[:6] in ("EVT010", "EVT015") and what.columns == ("d",) and what.known == {"id": 1}


@pytest.mark.parametrize(
    ("items", "value"),
    [
        (debezium.field("", "int32", f"{debezium.TIME}Date"), ["2024-02-29"]),
        (debezium.field("", "int32", f"{debezium.TIME}Date"), 19782),
        (debezium.field("", "int32", f"{debezium.TIME}Date"), {"x": 19782}),
        (debezium.field("", "int16"), [1, 70000]),
        (debezium.field("", "bytes"), ["no base64"]),
        (debezium.field("", "bytes", f"{debezium.CONNECT}Decimal", scale="2"), [[]]),
    ],
)
def test_e11_an_item_of_an_array_is_read_like_a_column_or_put_aside(items: dict[str, Any], value: Any) -> None:
    field = {"type": "array", "optional": True, "field": "a", "items": items}
    golden = debezium.typed("", [field], {"a": value}, "")
    assert refused("debezium", golden.message, golden.setting()).columns == ("a",)


@pytest.mark.parametrize("native", ["", "array", "integer[]"])
@pytest.mark.parametrize(
    ("value", "told"), [([19782], None), (["BNI="], None), ([], "[]"), ([None, True], "[null,true]")]
)
def test_e14_an_array_whose_items_nobody_describes_is_not_guessed(native: str, value: Any, told: str | None) -> None:
    schema = TableSchema("inv.s", (column("id", Kind.INT32, "int32"), column("a", Kind.JSON, native)), ("id",))
    setting = Setting(1, {"inv.s": Wanted(TableRule("inv.s"), schema)})
    message = pg_row({"id": 1, "a": value})
    if told is None:
        what = refused("debezium", message, setting)
        assert what.reason.startswith("EVT014") and what.columns == ("a",)
        return
    (record,) = records(decoded("debezium", message, setting))
    assert record.after == f'{{"id":1,"a":"{told}"}}'


@pytest.mark.parametrize(
    ("native", "value", "told"),
    [
        ("array<int32 io.debezium.time.Date>", [19782], '["2024-02-29"]'),
        ("array<array<int16>>", [[1], None], "[[1],null]"),
        ("map<bytes org.apache.kafka.connect.data.Decimal(scale=2)>", {"x": "BNI="}, '{"x":12.34}'),
        ("array<struct io.debezium.data.VariableScaleDecimal>", [{"scale": 1, "value": "Dw=="}], "[1.5]"),
    ],
)
def test_a_description_says_what_the_items_of_an_array_are(native: str, value: Any, told: str) -> None:
    schema = TableSchema("inv.s", (column("id", Kind.INT32, "int32"), column("a", Kind.JSON, native)), ("id",))
    setting = Setting(1, {"inv.s": Wanted(TableRule("inv.s"), schema)})
    (record,) = records(decoded("debezium", pg_row({"id": 1, "a": value}), setting))
    assert json.loads(record.after or "")["a"] == told


@pytest.mark.parametrize(
    ("items", "sure"),
    [
        (debezium.field("", "bytes", f"{debezium.CONNECT}Decimal", scale="2"), False),
        (debezium.field("", "int64", f"{debezium.TIME}MicroTimestamp"), False),
        (debezium.field("", "boolean"), False),
        (debezium.field("", "int32", f"{debezium.TIME}Date"), True),
        (debezium.field("", "string"), True),
    ],
)
def test_a_null_that_may_be_a_wide_array_that_was_not_sent_is_put_aside(items: dict[str, Any], sure: bool) -> None:
    """As a real connector sends arrays of these items that an update did not touch."""
    array = {"type": "array", "optional": True, "field": "a", "items": items}

    def message(op: str, **headers: bytes) -> Message:
        body = debezium.with_schema(
            debezium.envelope(op, None, {"id": 1, "a": None}, debezium.pg()), debezium.field("id", "int32"), array
        )
        return debezium.message(body, debezium.key_schema({"id": 1}), headers=tuple(headers.items()))

    whole = Setting(options={"full_before": True})
    for sent, setting in ((message("c"), Setting()), (message("r"), Setting()), (message("u"), whole)):
        assert [one.op for one in records(decoded("debezium", sent, setting))] != [Operation.UNREADABLE]
    for sent in (message("u"), message("c", **{"__debezium.oldkey": b'{"id":2}'})):
        (record,) = records(decoded("debezium", sent, Setting()))
        what = told(record)
        assert (what is None) == sure
        assert what is None or (what.reason.startswith("EVT020") and record.key == "[1]")
    many = decoder("debezium", Setting())
    assert isinstance(many, DecodesMany)
    found = list(many.decode_many([message("r")._replace(offset=n) for n in range(50)] + [message("u")] * 50))
    aside = [one for one in unpacked(found) if isinstance(one, ChangeRecord) and one.op == Operation.UNREADABLE]
    assert len(aside) == (0 if sure else 50)


@pytest.mark.parametrize("value", [b"1e400", b"1e-400", b'"1e400"'])
def test_e12_a_float_is_what_it_was_or_put_aside(value: bytes) -> None:
    like = next(golden for golden in ydb.GOLDENS if golden.name == "every type")
    message = ydb.message(b'{"key":["AQI="],"update":{"c":' + value + b"}}")
    assert refused("ydb", message, like.setting()).columns == ("c",)


@pytest.mark.parametrize("method", ["mysql-cdc-binlog", "mysql-backfill-fulldump"])
@pytest.mark.parametrize(
    ("change_type", "is_deleted"),
    [("UPDATE-DELETE", False), ("DELETE", False), ("INSERT", True), ("UPDATE-INSERT", True)],
)
def test_a_row_that_is_gone_and_there_is_put_aside(change_type: str, is_deleted: bool, method: str) -> None:
    """One member alone would be half of what the event says: the row that a key left, written as if it had stayed."""
    event = datastream.event(datastream.mysql(change_type, is_deleted), method)
    what = refused("datastream", datastream.line(event), GOOD["datastream"].setting())
    assert what.reason == f"EVT007 change_type is {change_type}, and is_deleted is {str(is_deleted).lower()}"


def test_a_change_that_only_mongodb_knows_is_none_of_the_others() -> None:
    message = datastream.line(datastream.event(datastream.mysql("READ", False)))
    assert refused("datastream", message, GOOD["datastream"].setting()).reason.startswith("EVT006")


@KINDS
@pytest.mark.parametrize("wrong", [b"\xff", b"\xed\xa0\x80", b"\\ud800"])
def test_e13_bytes_that_are_no_characters_are_put_aside(kind: str, wrong: bytes) -> None:
    assert sent(kind, b'{"a":"' + wrong + b'"}').reason.startswith("EVT011")


def test_e13_a_nul_in_a_text_is_a_character() -> None:
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
def test_e14_a_column_that_nobody_described_puts_its_row_aside_with_all_that_is_known(kind: str) -> None:
    (record,) = records(decoded(kind, NEW_COLUMN[kind], GOOD[kind].setting()))
    what = told(record)
    assert what is not None and what.reason.startswith("EVT014")
    assert (record.key, what.columns, what.known["v"]) == ("[1]", ("new",), "x")


@KINDS
def test_e15_a_table_that_nobody_copies_is_counted(kind: str) -> None:
    setting = Setting(1, {})
    (told,) = decoded(kind, GOOD[kind].message, setting)
    assert isinstance(told, Ignored) and told.count == 1 and told.table, "and its table is named"


@pytest.mark.parametrize("damage", ["schema", "codec", "names"])
def test_e20_an_avro_file_whose_schema_cannot_be_read_is_put_aside(damage: str) -> None:
    whole = avro_writer.file(datastream.PLAIN, datastream.OUT_OF_ORDER)
    before, after = {
        "schema": (b'"type": "record"', b'"type": "recorb"'),
        "codec": (b"\x08null", b"\x08nuII"),
        "names": (b'"long"', b'"lonG"'),
    }[damage]
    assert before in whole
    what = refused("datastream", Message(whole.replace(before, after)), Setting())
    assert what.reason.startswith("EVT014")


def test_e21_of_a_file_that_ends_too_early_what_came_before_is_told() -> None:
    whole = avro_writer.file(datastream.PLAIN, datastream.OUT_OF_ORDER)
    found = records(decoded("datastream", Message(whole[:-20], channel="f"), Setting()))
    assert [record.op for record in found] == [Operation.UNREADABLE], "one block, and its end is missing"
    two = whole + whole[whole.index(b"0123456789abcdef") + 16 :]
    found = records(decoded("datastream", Message(two[:-20], channel="f"), Setting()))
    assert [record.op for record in found] == [Operation.INSERT] * 3 + [Operation.UNREADABLE]
    assert found[-1].position == '{"channel":"f","offset":3}'


def test_e21_a_file_without_records_says_nothing_and_is_no_error() -> None:
    assert decoded("datastream", Message(avro_writer.file(datastream.PLAIN, [])), Setting()) == [Ignored(0)]


@pytest.mark.parametrize("kind", ["debezium", "datastream"])
def test_e24_a_time_a_year_ahead_is_taken(kind: str) -> None:
    ahead = 1_900_000_000_000
    message = {
        "debezium": pg_row({"id": 1, "v": "x", "at": None}, ts_us=ahead * 1000),
        "datastream": datastream.line(datastream.event(datastream.mysql("INSERT", False), source_timestamp=ahead)),
    }[kind]
    (record,) = records(decoded(kind, message, GOOD[kind].setting()))
    assert isinstance(record, ChangeRecord) and record.commit_ts is not None and record.commit_ts.year == 2030


def test_e05_half_of_a_move_that_cannot_be_read_stays_one() -> None:
    message = pg_row({"id": 2, "v": debezium.PLACEHOLDER, "at": "x"}, {"id": 2})
    (record,) = records(decoded("debezium", message, ROWS[0].setting()))
    assert (record.op, record.key, record.phase) == (Operation.UNREADABLE, "[2]", 1)
    assert record.link_id == ROWS[0].records[0]["link_id"], "that of the half that went"


def test_one_record_of_an_avro_file_is_kept_with_its_schema() -> None:
    """Its bytes alone mean nothing; beside the schema they mean again what they meant in the file."""
    good, bad = datastream.OUT_OF_ORDER[0], {**datastream.OUT_OF_ORDER[1], "uuid": None}
    setting = Setting()
    whole = Message(avro_writer.file(datastream.PLAIN, [good, bad]), topic="f", channel="f")
    told_good, told_bad = records(decoded("datastream", whole, setting))
    assert (told_good.op, told_bad.op) == (Operation.INSERT, Operation.UNREADABLE)
    kept = message_of(told_bad)
    assert kept is not None and kept.offset == 1
    assert records(decoder("datastream", setting).decode(kept)) == [told_bad]
