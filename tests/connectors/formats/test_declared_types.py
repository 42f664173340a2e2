"""Columns of a declared schema that names no type of the source (``native``), and every form that a value can have in
JSON: it is kept as a whole, or its record is unreadable. Nothing is guessed, and no part of a value is taken."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.table.schema import Column, Kind
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.declared_columns import TYPES, VALUES, message, setting
from tests.connectors.formats.golden import column, records
from tests.connectors.formats.refusals import decoded
from tests.connectors.formats.test_batch_decoding import COPIES, TOGETHER, decode_both_ways

SHAPES: dict[str, Any] = {
    "object": {"a": 1},
    "empty": {},
    "array": [1],
    "whole": 1,
    "fraction": Decimal("1.5"),
    "text": "1234",
    "true": True,
}
"""The text is one of a number, of base64 and of hex."""
V, N, S, T = "EVT015", "EVT010", "EVT014", "EVT009"
OBJECT, ARRAY = '"{\\"a\\":1}"', '"[1]"'
INTEGERS = (V, V, V, "1", V, V, "1")
FLOATS = (V, V, V, "1.0", "1.5", V, V)
TIMES = (T, T, T, S, S, T, T)
TEXTS = (OBJECT, '"{}"', ARRAY, S, S, '"1234"', '"true"')

COMMON = {
    Kind.BOOLEAN: (V, V, V, "true", V, V, "true"),
    Kind.INT16: INTEGERS,
    Kind.INT32: INTEGERS,
    Kind.INT64: INTEGERS,
    Kind.FLOAT32: FLOATS,
    Kind.FLOAT64: FLOATS,
    Kind.DECIMAL: (V, V, V, '"1.00"', '"1.50"', '"1234.00"', V),
    Kind.TEXT: TEXTS,
    Kind.JSON: (OBJECT, '"{}"', ARRAY, '"1"', '"1.5"', '"1234"', '"true"'),
    Kind.UUID: (V,) * 7,
    Kind.BYTES: (V, V, V, V, V, '"1234"', V),
    Kind.DATE: TIMES,
    Kind.TIMESTAMP: TIMES,
    Kind.TIMESTAMPTZ: TIMES,
}
"""Kind → what becomes of each form: canonical JSON, or the code of the reason."""
DIFFERENT = {
    "debezium": {
        Kind.DECIMAL: (V, V, V, '"1.00"', '"1.50"', S, V),
        Kind.TEXT: (OBJECT, '"{}"', S, S, S, '"1234"', '"true"'),
        Kind.JSON: (OBJECT, '"{}"', S, '"1"', '"1.5"', '"1234"', '"true"'),
    },
    "ydb": {Kind.JSON: (OBJECT, '"{}"', ARRAY, '"1"', '"1.5"', '"\\"1234\\""', '"true"')},
    "datastream": {
        Kind.JSON: (OBJECT, '"{}"', ARRAY, '"1"', '"1.5"', S, '"true"'),
        Kind.BYTES: (V, V, V, V, V, S, V),
    },
}
"""Debezium sends decimals as base64, and arrays of dates as arrays of numbers. YDB inlines documents, and all its bytes
are base64. Datastream's bytes are base64 or hex, and its documents are inlined or texts."""
CELLS = [
    pytest.param(form, kind, shape, expected, id=f"{form} {kind} {shape}")
    for form, different in DIFFERENT.items()
    for kind, row in (COMMON | different).items()
    for shape, expected in zip(SHAPES, row, strict=True)
]


def result(form: str, value: Any, declared: Column, cast: bool = False, **options: Any) -> tuple[str, str]:
    """The value in the image, and the reason why there is none."""
    (record,) = records(decoded(form, message(form, v=value), setting(form, declared, cast=cast, **options)))
    if what := undecoded(record):
        assert what.columns == ("v",), "the column is named"
        return what.reason[:6], what.reason
    assert record.after is not None
    return record.after.removeprefix('{"id":1,"v":').removesuffix("}"), ""


def test_every_kind_of_column_has_a_row_in_the_table() -> None:
    assert COMMON.keys() == set(Kind)


@pytest.mark.parametrize(("form", "kind", "shape", "expected"), CELLS)
def test_a_value_is_kept_as_a_whole_or_refused(form: str, kind: Kind, shape: str, expected: str) -> None:
    found, reason = result(form, SHAPES[shape], Column("v", TYPES[kind]))
    assert found == expected
    assert ("native" in reason) == (expected == S), "what is missing is named"


@pytest.mark.parametrize("form", TOGETHER)
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("shape", SHAPES)
def test_messages_in_a_batch_have_the_values_of_messages_alone(form: str, kind: Kind, shape: str) -> None:
    require_same_in_batches(form, SHAPES[shape], Column("v", TYPES[kind]))


def require_same_in_batches(form: str, value: Any, declared: Column) -> None:
    """Among messages with the same value, and among others."""
    same, usual = message(form, v=value), message(form, v=VALUES[declared.type.kind])
    for among in (same, usual):
        messages = [(same if offset == COPIES // 2 else among)._replace(offset=offset) for offset in range(COPIES)]
        together, alone, _ = decode_both_ways(form, setting(form, declared), messages, COPIES)
        assert together == alone


@pytest.mark.parametrize("form", DIFFERENT)
@pytest.mark.parametrize("kind", Kind)
def test_null_is_null(form: str, kind: Kind) -> None:
    assert result(form, None, Column("v", TYPES[kind])) == ("null", "")


@pytest.mark.parametrize("form", DIFFERENT)
@pytest.mark.parametrize("value", [{"value": "x", "length": 3}, {"value": "x", "b": 1}, {"time": 1, "offset": 0}])
def test_no_part_of_an_object_is_taken_for_a_text(form: str, value: dict[str, Any]) -> None:
    found, _ = result(form, value, column("v", Kind.TEXT))
    assert json.loads(json.loads(found)) == value


@pytest.mark.parametrize("form", DIFFERENT)
@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Kind.UUID, "65df1ec1-a97d-47b2-ae56-3c023da6ee8c", "65df1ec1-a97d-47b2-ae56-3c023da6ee8c"),
        (Kind.DATE, "2024-02-29", "2024-02-29"),
        (Kind.TIMESTAMP, "2024-02-29T12:34:56.5", "2024-02-29T12:34:56.500000"),
        (Kind.TIMESTAMP, "2024-02-29T12:34:56Z", "2024-02-29T12:34:56"),
        (Kind.TIMESTAMPTZ, "2024-02-29T12:34:56+02:00", "2024-02-29T10:34:56Z"),
        (Kind.FLOAT64, "-Infinity", "-Infinity"),
        (Kind.DECIMAL, "-12.3", "-12.30"),
        (Kind.TEXT, "10:30:00", "10:30:00"),
    ],
)
def test_a_text_that_is_certain_is_read(form: str, kind: Kind, text: str, expected: str) -> None:
    assert result(form, text, Column("v", TYPES[kind])) == (json.dumps(expected), "")


@pytest.mark.parametrize("form", DIFFERENT)
def test_the_zone_of_a_time_is_not_dropped(form: str) -> None:
    found, reason = result(form, "2024-02-29T12:34:56+02:00", column("v", Kind.TIMESTAMP))
    assert found == T and "zone" in reason


@pytest.mark.parametrize("form", ["debezium", "datastream"])
def test_a_text_that_is_no_json_is_not_a_document(form: str) -> None:
    for text in ("x", "", "{", '{"a":NaN}', "[1,]", '{"a":1} {}'):
        assert result(form, text, column("v", Kind.JSON))[0] in (V, S), text
    for text in ('{"a": 1.50}', "[]", '{"a":1,"a":2}'):
        assert result(form, text, column("v", Kind.JSON)) == (json.dumps(text), "")


@pytest.mark.parametrize("form", DIFFERENT)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_column_that_is_cast_and_has_no_type_of_the_source_has_the_text_of_the_message(form: str, shape: str) -> None:
    value = SHAPES[shape]
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=float)
    assert result(form, value, column("v", Kind.TEXT), cast=True) == (json.dumps(text), "")


MOMENT, MOMENT_US = "2024-02-29T12:34:56.123000", 1_709_210_096_123_000
DATASTREAM_NATIVES = [
    (Kind.BYTES, "string hex", "00ff10a0", '"AP8QoA=="'),
    (Kind.BYTES, "string hex", "00FF", '"AP8="'),
    (Kind.BYTES, "string hex", "", '""'),
    (Kind.BYTES, "string hex", "00f", V),
    (Kind.BYTES, "string hex", "00 ff", V),
    (Kind.BYTES, "bytes", "AP8QoA==", '"AP8QoA=="'),
    (Kind.BYTES, "varbinary(16)", "00ff10a0", S),
    (Kind.TEXT, "long time-micros", 37_800_000_000, '"10:30:00"'),
    (Kind.TEXT, "long time-interval-micros", -37_800_000_000, '"-10:30:00"'),
    (Kind.TEXT, "int time-millis", 37_800_500, '"10:30:00.5"'),
    (Kind.TEXT, "long time-micros", "10:30:00", '"10:30:00"'),
    (Kind.TEXT, "long time-micros", Decimal("1.5"), T),
    (Kind.TEXT, "string varchar", 5, S),
    (Kind.TEXT, "string number", 12345678901234567890, '"12345678901234567890"'),
    (Kind.TEXT, "string number", Decimal("1.50"), '"1.50"'),
    (Kind.TEXT, "string number", True, V),
    (Kind.TEXT, "record varchar", {"value": "x", "length": 3}, '"x"'),
    (Kind.TEXT, "record varchar", {"value": "x", "b": 1}, V),
    (Kind.TEXT, "record varchar", "x", '"x"'),
    (Kind.TEXT, "record timeTz", {"time": 37_800_000_000, "offset": 3_600_000}, '"10:30:00+01:00"'),
    (Kind.TEXT, "record timeTz", {"time": 37_800_000_000}, V),
    (Kind.TIMESTAMP, "long timestamp-micros", MOMENT_US, f'"{MOMENT}"'),
    (Kind.TIMESTAMP, "long timestamp-millis", MOMENT_US // 1000, f'"{MOMENT}"'),
    (Kind.TIMESTAMP, "int date", 19_782, '"2024-02-29T00:00:00"'),
    (Kind.TIMESTAMP, "long", MOMENT_US, S),
    (Kind.TIMESTAMP, "datetime", MOMENT_US, S),
    (Kind.TIMESTAMPTZ, "long timestamp-millis", MOMENT_US // 1000, f'"{MOMENT}Z"'),
    (Kind.TIMESTAMPTZ, "record timestampTz", {"timestamp": MOMENT_US, "offset": 0}, f'"{MOMENT}Z"'),
    (Kind.TIMESTAMPTZ, "record timestampTz", {"timestamp": MOMENT_US, "zone": "UTC"}, V),
    (Kind.TIMESTAMPTZ, "", {"timestamp": MOMENT_US, "offset": 0}, T),
    (Kind.DATE, "int date", 19_782, '"2024-02-29"'),
    (Kind.DATE, "long timestamp-micros", 19_782 * 86_400_000_000, '"2024-02-29"'),
    (Kind.DATE, "long timestamp-micros", MOMENT_US, T),
    (Kind.DATE, "record calendarDate", {"year": 2024, "month": 2, "day": 29}, '"2024-02-29"'),
    (Kind.DATE, "record calendarDate", {"year": 2024, "month": 2, "day": 30}, T),
    (Kind.DATE, "", {"year": 2024, "month": 2, "day": 29}, T),
    (Kind.JSON, "string json", "1", '"1"'),
    (Kind.JSON, "string json", {"a": 1}, OBJECT),
    (Kind.JSON, "record interval", "P1M", '"\\"P1M\\""'),
    (Kind.FLOAT64, "bytes decimal(10,2)", Decimal("1.5"), "1.5"),
    (Kind.TEXT, "bytes decimal(50,2)", Decimal("1.50"), '"1.50"'),
]


@pytest.mark.parametrize(("kind", "native", "value", "expected"), DATASTREAM_NATIVES)
def test_a_type_of_datastream_explains_a_value(kind: Kind, native: str, value: Any, expected: str) -> None:
    assert result("datastream", value, Column("v", TYPES[kind], True, native))[0] == expected


YDB_NATIVES = [
    (Kind.DATE, "Date32", 19_782, '"2024-02-29"'),
    (Kind.DATE, "Date", 19_782, S),
    (Kind.DATE, "Datetime64", 1_709_210_096, S),
    (Kind.TIMESTAMPTZ, "Timestamp64", MOMENT_US, f'"{MOMENT}Z"'),
    (Kind.TIMESTAMPTZ, "Timestamp", MOMENT_US, S),
    (Kind.TIMESTAMP, "Timestamp64", MOMENT_US, S),
    (Kind.INT64, "Interval", 5, "5"),
    (Kind.TEXT, "Interval", 5, S),
    (Kind.TEXT, "Uint64", 5, S),
    (Kind.TEXT, "DyNumber", ".5e1", '".5e1"'),
    (Kind.INT32, "Uint64", 5, "5"),
    (Kind.INT32, "Uint64", 1 << 40, N),
    (Kind.DECIMAL, "Uint64", 5, '"5.00"'),
    (Kind.BYTES, "String", "AP8QoA==", '"AP8QoA=="'),
    (Kind.BYTES, "Utf8", "abcd", S),
]


@pytest.mark.parametrize(("kind", "native", "value", "expected"), YDB_NATIVES)
def test_a_type_of_ydb_explains_a_value_if_the_column_has_that_type(
    kind: Kind, native: str, value: Any, expected: str
) -> None:
    declared = Column("v", TYPES[kind], True, native)
    assert result("ydb", value, declared)[0] == expected
    require_same_in_batches("ydb", value, declared)


DEBEZIUM_NATIVES = [
    (Kind.TEXT, f"int64 {debezium.TIME}MicroTime", 37_800_000_000, '"10:30:00"'),
    (Kind.TEXT, "struct io.debezium.data.VariableScaleDecimal", {"scale": 1, "value": "Dw=="}, '"1.5"'),
    (Kind.TEXT, "", {"scale": 1, "value": "Dw=="}, S),
    (Kind.TEXT, "", [None, True], '"[null,true]"'),
    (Kind.DECIMAL, f"bytes {debezium.CONNECT}Decimal(scale=2,connect.decimal.precision=10)", "BNI=", '"12.34"'),
    (Kind.DECIMAL, "string", "1234", '"1234.00"'),
    (Kind.DECIMAL, "", "BNI=", S),
    (Kind.DECIMAL, "", "Infinity", S),
    (Kind.DATE, f"int64 {debezium.TIME}MicroTimestamp", MOMENT_US, S),
    (Kind.BYTES, "bytes", "AP8QoA==", '"AP8QoA=="'),
    (Kind.BYTES, "string", "AP8QoA==", S),
]


@pytest.mark.parametrize(("kind", "native", "value", "expected"), DEBEZIUM_NATIVES)
def test_a_type_of_connect_explains_a_value_if_the_column_has_that_type(
    kind: Kind, native: str, value: Any, expected: str
) -> None:
    declared = Column("v", TYPES[kind], True, native)
    assert result("debezium", value, declared)[0] == expected
    require_same_in_batches("debezium", value, declared)


@pytest.mark.parametrize(
    ("binaries", "value", "expected"),
    [
        ("bytes", "00ff10a0", '"00ff10a0"'),
        ("base64", "AP8QoA==", '"AP8QoA=="'),
        ("hex", "00ff10a0", '"AP8QoA=="'),
        ("hex", "AP8QoA==", V),
        ("base64-url-safe", "-_8=", '"+/8="'),
        ("base64-url-safe", "+/8=", V),
    ],
)
def test_bytes_of_debezium_have_the_form_that_the_connector_is_set_to(binaries: str, value: str, expected: str) -> None:
    assert result("debezium", value, column("v", Kind.BYTES), binaries=binaries)[0] == expected


TAGGED = [
    (Kind.TEXT, {"S": "x"}, '"x"'),
    (Kind.TEXT, {"N": "1.50"}, '"1.50"'),
    (Kind.TEXT, {"B": "AQI="}, V),
    (Kind.TEXT, {"L": []}, '"{\\"L\\":[]}"'),
    (Kind.BYTES, {"B": "AQI="}, '"AQI="'),
    (Kind.BYTES, {"S": "abcd"}, V),
    (Kind.BOOLEAN, {"BOOL": True}, "true"),
    (Kind.BOOLEAN, {"N": "1"}, V),
    (Kind.INT64, {"N": "1"}, "1"),
    (Kind.INT64, {"S": "1"}, V),
    (Kind.DECIMAL, {"N": "1.5"}, '"1.50"'),
    (Kind.FLOAT64, {"N": "1.5"}, "1.5"),
    (Kind.DATE, {"S": "2024-02-29"}, '"2024-02-29"'),
    (Kind.DATE, {"S": "soon"}, T),
    (Kind.DATE, {"N": "19782"}, V),
    (Kind.TIMESTAMP, {"S": "2024-02-29T12:34:56"}, '"2024-02-29T12:34:56"'),
    (Kind.TIMESTAMPTZ, {"S": "2024-02-29T12:34:56.123456789Z"}, T),
    (Kind.UUID, {"S": "x"}, V),
    (Kind.JSON, {"S": '{"a":1}'}, OBJECT),
    (Kind.JSON, {"S": "x"}, V),
    (Kind.JSON, {"N": "5"}, '"5"'),
    (Kind.JSON, {"BOOL": True}, '"true"'),
    (Kind.JSON, {"B": "AQI="}, V),
]


@pytest.mark.parametrize(("kind", "tagged", "expected"), TAGGED)
def test_a_value_of_dynamodb_is_read_by_its_tag(kind: Kind, tagged: dict[str, Any], expected: str) -> None:
    sent = ydb.stream_record("INSERT", NewImage={"id": {"N": "1"}, "v": tagged})
    (record,) = records(decoded("ydb", sent, setting("ydb", Column("v", TYPES[kind]))))
    if what := undecoded(record):
        assert (record.op, what.reason[:6]) == (Operation.UNREADABLE, expected)
    else:
        assert record.after == f'{{"id":1,"v":{expected}}}'
