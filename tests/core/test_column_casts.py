"""Casts of values: without loss, or not at all."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.columns.casts import SOURCES, CannotCast, can_cast, cast_function
from airflow_cdc_provider.core.columns.values import from_json, single_precision, to_json
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, parse_type

DAY = date(2024, 2, 29)
NOON = datetime(2024, 2, 29, 12)

VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INT16: st.integers(-(1 << 15), (1 << 15) - 1),
    Kind.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    Kind.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Kind.FLOAT32: st.floats(width=32),
    Kind.FLOAT64: st.floats(),
    Kind.DECIMAL: st.integers(-(10**12), 10**12).map(lambda n: Decimal(n).scaleb(-4)),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(),
    Kind.TIMESTAMPTZ: st.datetimes(timezones=st.just(UTC)),
    Kind.TEXT: st.text() | st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,5})?", fullmatch=True),
}
NUMBERS = (Kind.INT16, Kind.INT32, Kind.INT64, Kind.DECIMAL)


def logical(kind: Kind) -> LogicalType:
    return LogicalType(kind, 18, 4) if kind is Kind.DECIMAL else LogicalType(kind)


def cast(source: Kind, target: str, value: Any) -> Any:
    return cast_function(source, parse_type(target))(value)


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (Kind.TEXT, "int32", "7", 7),
        (Kind.TEXT, "int64", "7.0", 7),
        (Kind.TEXT, "decimal(5,2)", "12.5", Decimal("12.50")),
        (Kind.FLOAT64, "decimal(5,2)", 0.1, Decimal("0.10")),
        (Kind.FLOAT32, "decimal(5,2)", single_precision(0.1), Decimal("0.10")),
        (Kind.INT64, "boolean", 1, True),
        (Kind.TEXT, "boolean", "False", False),
        (Kind.DATE, "timestamp", DAY, datetime(2024, 2, 29)),
        (Kind.TIMESTAMP, "date", datetime(2024, 2, 29), DAY),
        (Kind.TIMESTAMPTZ, "timestamp", NOON.replace(tzinfo=UTC), NOON),
        (Kind.TEXT, "timestamptz", "2024-02-29T13:00:00+01:00", NOON.replace(tzinfo=UTC)),
        (Kind.TEXT, "uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (Kind.TEXT, "json", '{"a": 1}', '{"a": 1}'),
        (Kind.DECIMAL, "float64", Decimal("0.1"), 0.1),
    ],
)
def test_a_value_that_both_types_have_is_converted(source: Kind, target: str, value: Any, expected: Any) -> None:
    result = cast(source, target, value)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (Kind.INT64, "int32", 1 << 31),
        (Kind.INT64, "boolean", 2),
        (Kind.DECIMAL, "decimal(5,1)", Decimal("1.25")),
        (Kind.DECIMAL, "decimal(3,2)", Decimal("10.00")),
        (Kind.DECIMAL, "int64", Decimal("1.5")),
        (Kind.INT64, "float64", (1 << 53) + 1),
        (Kind.FLOAT64, "float32", 0.1),
        (Kind.FLOAT64, "int64", float("nan")),
        (Kind.FLOAT32, "decimal(5,2)", float("inf")),
        (Kind.TIMESTAMP, "date", NOON),
        (Kind.TEXT, "int64", "0x10"),
        (Kind.TEXT, "int64", " 7"),
        (Kind.TEXT, "int64", "1_000"),
        (Kind.TEXT, "int64", "\N{ARABIC-INDIC DIGIT SEVEN}"),
        (Kind.TEXT, "int64", "1e999"),
        (Kind.TEXT, "timestamp", "2024-02-29T12:00:00.1234567"),
        (Kind.TEXT, "date", "2024-02-30"),
        (Kind.TEXT, "uuid", "0-1-2"),
        (Kind.TEXT, "json", '{"a": NaN}'),
        (Kind.TEXT, "json", "[" * 100_000),
        (Kind.TEXT, "boolean", "yes"),
    ],
)
def test_a_value_that_would_lose_something_is_refused_without_being_quoted(
    source: Kind, target: str, value: Any
) -> None:
    with pytest.raises(CannotCast) as refused:
        cast(source, target, value)
    assert str(value) not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


@given(st.data())
def test_a_converted_value_can_be_converted_back_so_no_two_values_become_one(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([kind for kind in VALUES if kind is not Kind.TEXT]))
    target = data.draw(st.sampled_from([kind for kind in SOURCES if can_cast(source, kind)]))
    value = data.draw(VALUES[source])
    try:
        converted = cast_function(source, logical(target))(value)
    except CannotCast:
        return
    if value == value and can_cast(target, source):  # NaN differs from itself
        assert cast_function(target, logical(source))(converted) == value


@given(st.data())
def test_values_are_the_same_from_json_and_from_arrow(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    value = data.draw(VALUES[kind])
    assert from_json(kind)(to_json(logical(kind))(value)) == value or value != value


@given(st.sampled_from(sorted(SOURCES)), st.sampled_from(sorted(VALUES)), st.data())
def test_no_value_raises_another_error(target: Kind, source: Kind, data: st.DataObject) -> None:
    if can_cast(source, target):
        with contextlib.suppress(CannotCast):
            cast_function(source, logical(target))(data.draw(VALUES[source]))


def test_types_are_written_as_they_are_read() -> None:
    for text in ("decimal(38,10)", "int64", "timestamptz"):
        assert str(parse_type(text)) == text
    for wrong in ("decimal", "decimal(39,0)", "decimal(2,3)", "number", "decimal(0,0)"):
        with pytest.raises(ValueError):
            parse_type(wrong)
