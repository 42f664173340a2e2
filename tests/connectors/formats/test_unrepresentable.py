"""Values of messages that no target type can represent: unreadable, or kept as the definition requires."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common.column_mapping import map_columns, source_columns
from airflow_cdc_provider.connectors.decoders.common.far_times import far_date, far_moment
from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Message
from airflow_cdc_provider.connectors.decoders.datastream import types as datastream
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.golden import column, records
from tests.connectors.formats.refusals import decoded, pg_row, refused

TIME = "io.debezium.time."
FAR_US, INFINITE, NEVER = 253_402_300_800_000_000, 9_223_372_036_825_200_000, -9_223_372_036_832_400_000
ODD = [
    ("int64", f"{TIME}MicroTimestamp", INFINITE, "infinity"),
    ("int64", f"{TIME}MicroTimestamp", NEVER, "-infinity"),
    ("int64", f"{TIME}MicroTimestamp", FAR_US + 500_000, "+10000-01-01T00:00:00.500000"),
    ("int64", f"{TIME}Timestamp", FAR_US // 1000, "+10000-01-01T00:00:00"),
    ("int32", f"{TIME}Date", 2_932_897, "+10000-01-01"),
    ("int32", f"{TIME}Date", -719_163, "+0000-12-31"),
    ("string", f"{TIME}ZonedTimestamp", "infinity", "infinity"),
    ("string", f"{TIME}ZonedTimestamp", "+292278994-08-17T07:12:55Z", "+292278994-08-17T07:12:55Z"),
]
PLAIN: dict[str, tuple[Any, str]] = {
    "MicroTimestamp": (1_709_210_096_123_456, "2024-02-29T12:34:56.123456"),
    "Timestamp": (1_709_210_096_123, "2024-02-29T12:34:56.123000"),
    "Date": (19_782, "2024-02-29"),
    "ZonedTimestamp": ("2024-02-29T12:34:56Z", "2024-02-29T12:34:56Z"),
}
CAST = TableRule("inv.s", columns=Columns(cast={"v": "text"}))
NULLS = TableRule("inv.s", on_unrepresentable=OnUnrepresentable.SET_NULL)


def settings_for(
    kind: str, semantic: str, value: Any, rule: TableRule, key: tuple[str, ...] = ("id",)
) -> DecoderSettings:
    """With the schema of the copy's table: that of the first message, under the rule."""
    (record,) = records(decoded("debezium", message(kind, semantic, None), DecoderSettings(1)))
    source = TableSchema(
        record.table,
        (column("id", Kind.INT32, "int32", nullable=False), source_column(kind, semantic)),
        key,
    )
    rule = replace(rule, source=record.table)
    return DecoderSettings(1, {record.table: CopiedTable(rule, selected_schema(rule, source))})


def source_column(kind: str, semantic: str) -> Any:
    kinds = {"Date": Kind.DATE, "ZonedTimestamp": Kind.TIMESTAMPTZ}
    return column("v", kinds.get(semantic.removeprefix(TIME), Kind.TIMESTAMP), f"{kind} {semantic}")


def message(kind: str, semantic: str, value: Any) -> Message:
    return debezium.typed("", [debezium.field("v", kind, semantic)], {"v": value}, "").message


def image(kind: str, semantic: str, value: Any, rule: TableRule) -> dict[str, Any]:
    (record,) = records(decoded("debezium", message(kind, semantic, value), settings_for(kind, semantic, value, rule)))
    assert record.after_complete and not record.warnings
    found: dict[str, Any] = json.loads(record.after or "")
    return found


@pytest.mark.parametrize(("kind", "semantic", "value", "text"), ODD)
def test_debezium_by_default_the_record_is_unreadable(kind: str, semantic: str, value: Any, text: str) -> None:
    what = refused("debezium", message(kind, semantic, value), settings_for(kind, semantic, value, TableRule("inv.s")))
    assert what.reason.startswith("EVT016") and "on_unrepresentable: set_null" in what.reason
    assert what.columns == ("v",)


@pytest.mark.parametrize(("kind", "semantic", "value", "text"), ODD)
def test_debezium_set_null_writes_null_and_the_text_to_another_column(
    kind: str, semantic: str, value: Any, text: str
) -> None:
    assert image(kind, semantic, value, NULLS) == {"id": 1, "v": None, "_cdc_text_v": text}
    plain, kept = PLAIN[semantic.removeprefix(TIME)]
    assert image(kind, semantic, plain, NULLS) == {"id": 1, "v": kept, "_cdc_text_v": None}


@pytest.mark.parametrize(("kind", "semantic", "value", "text"), ODD)
def test_debezium_a_cast_column_contains_the_text(kind: str, semantic: str, value: Any, text: str) -> None:
    assert image(kind, semantic, value, CAST) == {"id": 1, "v": text}
    plain, kept = PLAIN[semantic.removeprefix(TIME)]
    assert image(kind, semantic, plain, CAST) == {"id": 1, "v": kept}


def test_debezium_a_cast_keeps_digits_below_a_microsecond() -> None:
    nano = 1_709_210_096_123_456_789
    assert image("int64", f"{TIME}NanoTimestamp", nano, CAST)["v"] == "2024-02-29T12:34:56.123456789"
    assert image("int64", f"{TIME}NanoTimestamp", -1, CAST)["v"] == "1969-12-31T23:59:59.999999999"
    zoned = "2024-02-29T12:34:56.123456789Z"
    assert image("string", f"{TIME}ZonedTimestamp", zoned, CAST)["v"] == zoned


def test_debezium_messages_without_schema_are_read_by_the_native_type() -> None:
    setting = settings_for("int64", f"{TIME}MicroTimestamp", INFINITE, CAST)
    (table,) = setting.tables or {}
    source = {"schema": table.partition(".")[0], "table": table.partition(".")[2]}
    (record,) = records(decoded("debezium", pg_row({"id": 1, "v": INFINITE}, {"id": 1}, **source), setting))
    assert json.loads(record.after or "")["v"] == "infinity"


def ydb_record(value: bytes, rule: TableRule) -> ChangeRecord:
    like = next(golden for golden in ydb.GOLDENS if golden.name == "every type")
    assert like.schema is not None
    rule = replace(rule, source=like.schema.table)
    setting = replace(like.setting(), tables={like.schema.table: CopiedTable(rule, selected_schema(rule, like.schema))})
    found = records(decoded("ydb", ydb.message(b'{"key":["AQI="],"update":{"d":' + value + b"}}"), setting))
    return found[0]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_ydb_a_decimal_that_is_no_number(text: str) -> None:
    value = f'"{text}"'.encode()
    assert ydb_record(value, TableRule("")).op == "unreadable"
    nulls = ydb_record(value, NULLS)
    assert json.loads(nulls.after or "") == {"id": "AQI=", "d": None, "_cdc_text_d": text}
    assert not nulls.after_complete, "the other columns are unknown"
    cast = replace(CAST, columns=Columns(cast={"d": "text"}))
    assert json.loads(ydb_record(value, cast).after or "") == {"id": "AQI=", "d": text}
    assert json.loads(ydb_record(b'"12.30"', cast).after or "") == {"id": "AQI=", "d": "12.300000000"}


@pytest.mark.parametrize(
    ("native", "value", "text"),
    [
        ("long timestamp-micros", FAR_US, "+10000-01-01T00:00:00"),
        ("int date", 2_932_897, "+10000-01-01"),
        ("bytes decimal(10,2)", "NaN", "NaN"),
        ("record timestampTz", {"timestamp": FAR_US, "offset": 0}, "+10000-01-01T00:00:00Z"),
    ],
)
def test_datastream_values_are_read_by_the_type_of_the_file(native: str, value: Any, text: str) -> None:
    kind = datastream.source_type(column("v", Kind.TEXT, native))
    assert kind is not None
    source = [column("id", Kind.INT32, "int"), replace(column("v", Kind.TEXT, native), type=kind)]

    def converted(rule: TableRule) -> list[str]:
        warnings: list[str] = []
        made = map_columns(rule, source, ("id",), lambda one: datastream.converter(one, warnings.append), warnings)
        return [one.convert(value) for one in made if one.column.name != "id"]

    assert converted(NULLS) == ["null", json.dumps(text)]
    assert converted(CAST) == [json.dumps(text)]
    copied = selected_schema(CAST, TableSchema("inv.s", tuple(source), ("id",)))
    assert source_columns(CAST, copied.columns, datastream.source_type) == source


@given(st.integers(min_value=-(10**9), max_value=10**9))
def test_far_dates_follow_the_calendar_and_each_has_a_unique_text(days: int) -> None:
    text = far_date(days)
    assert text != far_date(days + 1)
    day = days + date(1970, 1, 1).toordinal()
    if 1 <= day <= date.max.toordinal():
        assert text == f"+{date.fromordinal(day).isoformat()}"
    assert far_moment(days * 86_400_000_000 - 1).startswith(far_date(days - 1))
