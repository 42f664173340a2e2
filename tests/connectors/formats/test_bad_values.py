"""The catalog of bad input, of single values: times, numbers, items of arrays. Each row by its number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, DecodesMany, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.blocks import unpacked
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import debezium_sqlserver_goldens as sqlserver
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.golden import column, decoder, records
from tests.connectors.formats.refusals import decoded, pg_row, refused


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
def test_e11_a_time_is_kept_or_unreadable_and_digits_below_a_microsecond_are_cut_with_a_warning(
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
def test_e12_a_decimal_is_exact_or_unreadable(value: bytes, becomes: str | None) -> None:
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
def test_e12_a_decimal_sent_as_a_number_has_the_digits_of_its_column(value: str) -> None:
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
def test_e11_an_item_of_an_array_is_read_like_a_column_or_unreadable(items: dict[str, Any], value: Any) -> None:
    field = {"type": "array", "optional": True, "field": "a", "items": items}
    golden = debezium.typed("", [field], {"a": value}, "")
    assert refused("debezium", golden.message, golden.setting()).columns == ("a",)


@pytest.mark.parametrize("native", ["", "array", "integer[]"])
@pytest.mark.parametrize(
    ("value", "expected"), [([19782], None), (["BNI="], None), ([], "[]"), ([None, True], "[null,true]")]
)
def test_e14_an_array_with_undescribed_items_is_unreadable(native: str, value: Any, expected: str | None) -> None:
    schema = TableSchema("inv.s", (column("id", Kind.INT32, "int32"), column("a", Kind.JSON, native)), ("id",))
    setting = DecoderSettings(1, {"inv.s": CopiedTable(TableRule("inv.s"), schema)})
    message = pg_row({"id": 1, "a": value})
    if expected is None:
        what = refused("debezium", message, setting)
        assert what.reason.startswith("EVT014") and what.columns == ("a",)
        return
    (record,) = records(decoded("debezium", message, setting))
    assert record.after == f'{{"id":1,"a":"{expected}"}}'


@pytest.mark.parametrize(
    ("native", "value", "expected"),
    [
        ("array<int32 io.debezium.time.Date>", [19782], '["2024-02-29"]'),
        ("array<array<int16>>", [[1], None], "[[1],null]"),
        ("map<bytes org.apache.kafka.connect.data.Decimal(scale=2)>", {"x": "BNI="}, '{"x":12.34}'),
        ("array<struct io.debezium.data.VariableScaleDecimal>", [{"scale": 1, "value": "Dw=="}], "[1.5]"),
    ],
)
def test_the_native_type_describes_the_items_of_an_array(native: str, value: Any, expected: str) -> None:
    schema = TableSchema("inv.s", (column("id", Kind.INT32, "int32"), column("a", Kind.JSON, native)), ("id",))
    setting = DecoderSettings(1, {"inv.s": CopiedTable(TableRule("inv.s"), schema)})
    (record,) = records(decoded("debezium", pg_row({"id": 1, "a": value}), setting))
    assert json.loads(record.after or "")["a"] == expected


def of(kind: str, semantic: str = "", **parameters: str) -> dict[str, Any]:
    return debezium.field("a", kind, semantic, **parameters)


def array_of(kind: str, semantic: str = "", **parameters: str) -> dict[str, Any]:
    return debezium.array("a", kind, semantic, **parameters)


@pytest.mark.parametrize(
    ("field", "sure"),
    [
        (array_of("bytes", f"{debezium.CONNECT}Decimal", scale="2"), False),
        (array_of("int64", f"{debezium.TIME}MicroTimestamp"), False),
        (array_of("boolean"), False),
        (array_of("double"), False),
        (array_of("int32", f"{debezium.TIME}Date"), True),
        (array_of("string"), True),
        (of("struct", f"{debezium.DATA}geometry.Geometry"), False),
        (of("struct", f"{debezium.DATA}geometry.Geography"), False),
        (of("struct", f"{debezium.DATA}geometry.Point"), True),
        (of("struct", f"{debezium.DATA}SparseDoubleVector"), False),
        (of("string", f"{debezium.DATA}Ltree"), False),
        (of("bytes", f"{debezium.DATA}Bits", length="2147483647"), False),
        (of("bytes", f"{debezium.DATA}Bits", length="12"), True),
        (of("bytes", f"{debezium.CONNECT}Decimal", scale="2"), True),
        (of("struct", f"{debezium.DATA}VariableScaleDecimal"), True),
        (of("string", f"{debezium.DATA}Json"), True),
        (of("string", f"{debezium.DATA}Xml"), True),
        (of("string", f"{debezium.DATA}Uuid"), True),
        (of("string", f"{debezium.DATA}Enum", allowed="a,b"), True),
        (of("string", f"{debezium.TIME}ZonedTimestamp"), True),
        (of("int64", f"{debezium.TIME}MicroDuration"), True),
        (of("double"), True),
        (of("bytes"), True),
        ({**of("map"), "keys": {"type": "string"}, "values": {"type": "string", "optional": True}}, True),
    ],
    ids=lambda field: f"{field['type']} {field.get('name', '')}" if isinstance(field, dict) else None,
)
def test_a_null_that_may_be_an_unsent_large_value_is_unreadable(field: dict[str, Any], sure: bool) -> None:
    """As a real connector sends values of these types that an update did not change."""

    def message(op: str, **headers: bytes) -> Message:
        body = debezium.with_schema(
            debezium.envelope(op, None, {"id": 1, "a": None}, debezium.pg()), debezium.field("id", "int32"), field
        )
        return debezium.message(body, debezium.key_schema({"id": 1}), headers=tuple(headers.items()))

    whole = DecoderSettings(options={"full_before": True})
    for sent, setting in ((message("c"), DecoderSettings()), (message("r"), DecoderSettings()), (message("u"), whole)):
        assert [one.op for one in records(decoded("debezium", sent, setting))] != [Operation.UNREADABLE]
    for sent in (message("u"), message("c", **{"__debezium.oldkey": b'{"id":2}'})):
        (record,) = records(decoded("debezium", sent, DecoderSettings()))
        what = undecoded(record)
        assert (what is None) == sure
        assert what is None or (what.reason.startswith("EVT020") and record.key == "[1]")
    many = decoder("debezium", DecoderSettings())
    assert isinstance(many, DecodesMany)
    found = list(many.decode_many([message("r")._replace(offset=n) for n in range(50)] + [message("u")] * 50))
    unreadable = [one for one in unpacked(found) if isinstance(one, ChangeRecord) and one.op == Operation.UNREADABLE]
    assert len(unreadable) == (0 if sure else 50)


def test_a_row_without_a_key_whose_text_sql_server_may_have_left_out_is_unreadable() -> None:
    setting = DecoderSettings(1, {"d.dbo.t": CopiedTable(TableRule("d.dbo.t"), sqlserver.KEYLESS)})

    def sent(text: str | None) -> Message:
        rows = [{"id": number, "v": text, "at": None} for number in (1, 2)]
        return debezium.message(debezium.envelope("u", *rows, sqlserver.SOURCE, 1), None, "s.d.dbo.t")

    assert refused("debezium", sent(None), setting).reason.startswith("EVT005")
    (record,) = records(decoded("debezium", sent("x"), setting))
    assert record.before_complete and record.after_complete


@pytest.mark.parametrize("value", [b"1e400", b"1e-400", b'"1e400"'])
def test_e12_a_float_is_exact_or_unreadable(value: bytes) -> None:
    like = next(golden for golden in ydb.GOLDENS if golden.name == "every type")
    message = ydb.message(b'{"key":["AQI="],"update":{"c":' + value + b"}}")
    assert refused("ydb", message, like.setting()).columns == ("c",)
