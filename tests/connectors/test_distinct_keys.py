"""Two different keys of a source are never one key of the copy, and one key is never two: for every kind of key, in the
decoder of each family of sources, and in the literals of each target.

Values are drawn close to each other, since a conversion that merges keys merges neighbours.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common.column_mapping import map_columns
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.datastream import types as datastream
from airflow_cdc_provider.connectors.decoders.debezium import converters as debezium
from airflow_cdc_provider.connectors.decoders.ydb import types as ydb
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import column_value
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.sources.postgres import types as postgres
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql
from airflow_cdc_provider.targets.sparksql import types as spark

REFUSED = (DecodeError, Unrepresentable)
CAST = TableRule("t", columns=Columns(cast={"k": "text"}))
US = 1_000_000
TEXTS = st.text("aA áa\u0301ß\0\t\u200b0'\\\"é\u00e9e\u0301", max_size=4)
DAYS = st.one_of(st.integers(-719_170, -719_150), st.integers(2_932_890, 2_932_900), st.integers(-5, 5))
MOMENTS_US = st.builds(lambda day, us: day * 86_400 * US + us, DAYS, st.integers(-2, 2)) | st.sampled_from(
    [9_223_372_036_825_200_000, -9_223_372_036_832_400_000, 253_402_300_799_999_999, -62_135_596_800_000_000]
)
INTS = st.one_of(st.integers(-3, 3), st.integers(2**53 - 2, 2**53 + 2), st.integers(2**63 - 3, 2**63 - 1))
FLOATS = st.sampled_from([0.0, 0.1, 0.1 + 1e-17, 0.30000000000000004, 0.3, 5e-324, 1e308, 2.0**53, 2.0**53 + 2, -0.1])
HUNDREDTHS = st.one_of(st.integers(-3, 3), st.integers(10**17 - 2, 10**17 + 2))


def unscaled(value: int) -> str:
    return b64encode(value.to_bytes(16, "big", signed=True)).decode()


def cents(value: int) -> Decimal:
    return Decimal(value).scaleb(-2)


def key_of(
    convert: Callable[[Column, Callable[[str], object]], Any], kind: LogicalType, native: str, cast: bool
) -> Any:
    """The canonical key that a decoder makes of a value."""
    warnings: list[str] = []
    source = Column("k", kind, False, native)
    made = map_columns(
        CAST if cast else None, [source], ("k",), lambda column: convert(column, warnings.append), warnings
    )
    schema = TableSchema("t", tuple(one.column for one in made), ("k",))
    images = RowImages(schema, [one.convert for one in made], warnings=warnings)
    return lambda value: images.key({"k": value})


DEBEZIUM = [
    ("int64", INTS),
    ("string", TEXTS),
    ("double", FLOATS.map(Decimal)),
    ("bytes", st.binary(max_size=3).map(lambda raw: b64encode(raw).decode())),
    ("int32 io.debezium.time.Date", DAYS),
    ("int64 io.debezium.time.MicroTimestamp", MOMENTS_US),
    ("int64 io.debezium.time.Timestamp", MOMENTS_US.map(lambda us: us // 1000)),
    ("int64 io.debezium.time.NanoTimestamp", st.integers(-2_000, 2_000)),
    ("int64 io.debezium.time.NanoTime", st.integers(0, 4_000)),
    ("int64 io.debezium.time.MicroTime", st.integers(-3, 90_000_000_000)),
    ("string io.debezium.time.ZonedTime", st.sampled_from(["10:00:00Z", "12:00:00+02:00", "10:00:00.000001Z"])),
    ("bytes org.apache.kafka.connect.data.Decimal(scale=2,connect.decimal.precision=20)", HUNDREDTHS.map(unscaled)),
    (
        "struct io.debezium.data.VariableScaleDecimal",
        HUNDREDTHS.map(lambda value: {"scale": 2, "value": unscaled(value)}),
    ),
]
YDB = [
    ("Int64", INTS),
    ("Utf8", TEXTS),
    ("Double", FLOATS.map(Decimal)),
    ("Date32", DAYS),
    ("Timestamp64", MOMENTS_US),
    ("Interval64", st.integers(-3, 3)),
    ("Decimal(22,2)", HUNDREDTHS.map(lambda value: str(cents(value)))),
]
DATASTREAM = [
    ("long", INTS),
    ("string", TEXTS),
    ("double", FLOATS),
    ("bytes", st.binary(max_size=3)),
    ("int date", DAYS),
    ("long timestamp-micros", MOMENTS_US),
    ("bytes decimal(20,2)", HUNDREDTHS.map(lambda value: value.to_bytes(16, "big", signed=True))),
    ("long time-micros", st.integers(0, 90_000_000_000)),
]


def distinct(key: Callable[[Any], Any], one: Any, other: Any) -> None:
    """A refused key stops its table, so no row of the copy is wrong."""
    found = []
    for value in (one, other):
        try:
            found.append(key(value))
        except REFUSED:
            return
    assert (found[0] == found[1]) == (one == other), found


@pytest.mark.parametrize("cast", [False, True], ids=["as it is", "as text"])
@pytest.mark.parametrize(("native", "values"), DEBEZIUM, ids=[native for native, _ in DEBEZIUM])
@given(data=st.data())
def test_keys_of_debezium_stay_distinct(
    native: str, values: st.SearchStrategy[Any], cast: bool, data: st.DataObject
) -> None:
    semantic = debezium.s.from_native(native)
    assert semantic is not None
    key = key_of(debezium.converter, debezium.s.logical_type(semantic), native, cast)
    distinct(key, data.draw(values), data.draw(values))


@pytest.mark.parametrize("cast", [False, True], ids=["as it is", "as text"])
@pytest.mark.parametrize(("native", "values"), YDB, ids=[native for native, _ in YDB])
@given(data=st.data())
def test_keys_of_ydb_stay_distinct(
    native: str, values: st.SearchStrategy[Any], cast: bool, data: st.DataObject
) -> None:
    key = key_of(ydb.converter, ydb.logical_type(native), native, cast)
    distinct(key, data.draw(values), data.draw(values))


@pytest.mark.parametrize("cast", [False, True], ids=["as it is", "as text"])
@pytest.mark.parametrize(("native", "values"), DATASTREAM, ids=[native for native, _ in DATASTREAM])
@given(data=st.data())
def test_keys_of_datastream_stay_distinct(
    native: str, values: st.SearchStrategy[Any], cast: bool, data: st.DataObject
) -> None:
    kind = datastream.source_type(Column("k", LogicalType(Kind.TEXT), False, native))
    assert kind is not None
    key = key_of(datastream.converter, kind, native, cast)
    distinct(key, data.draw(values), data.draw(values))


MOMENTS = st.builds(lambda us: datetime(2024, 2, 29, tzinfo=UTC) + timedelta(microseconds=us), st.integers(-3, 3))
BEYOND = st.sampled_from(["infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "9999-12-31", "0001-01-01"])
POLLED = [
    (LogicalType(Kind.INT64), INTS),
    (LogicalType(Kind.TEXT), TEXTS),
    (LogicalType(Kind.FLOAT64), FLOATS),
    (LogicalType(Kind.BYTES), st.binary(max_size=3)),
    (LogicalType(Kind.DECIMAL, 20, 2), HUNDREDTHS.map(cents)),
    (LogicalType(Kind.DATE), BEYOND),
    (LogicalType(Kind.TIMESTAMPTZ), MOMENTS),
    (LogicalType(Kind.TIMESTAMP), MOMENTS.map(lambda moment: moment.replace(tzinfo=None))),
]


@pytest.mark.parametrize(("kind", "values"), POLLED, ids=[str(kind) for kind, _ in POLLED])
@given(data=st.data())
def test_keys_of_a_polled_table_stay_distinct(
    kind: LogicalType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    distinct(lambda value: canonical_value(kind, column_value(kind, value)), data.draw(values), data.draw(values))


def cells(us: int) -> str:
    return f"{datetime(2024, 2, 29) + timedelta(microseconds=us)}"


STREAMED = [
    (Kind.INT64, INTS.map(str)),
    (Kind.TEXT, TEXTS.filter(lambda text: "\0" not in text).map(lambda text: text.encode().decode("latin-1"))),
    (Kind.FLOAT64, FLOATS.map(repr)),
    (Kind.BYTES, st.binary(max_size=3).map(lambda raw: f"\\x{raw.hex()}")),
    (Kind.DECIMAL, HUNDREDTHS.map(lambda value: f"{cents(value):f}")),
    (Kind.DATE, BEYOND | st.dates().map(date.isoformat)),
    (Kind.TIMESTAMP, st.integers(-3, 3).map(cells)),
    (Kind.TIMESTAMPTZ, st.integers(-3, 3).map(lambda us: f"{cells(us)}+00")),
]


@pytest.mark.parametrize(("kind", "values"), STREAMED, ids=[kind for kind, _ in STREAMED])
@given(data=st.data())
def test_keys_of_a_postgresql_stream_stay_distinct(
    kind: Kind, values: st.SearchStrategy[str], data: st.DataObject
) -> None:
    convert = postgres.converter(kind)
    distinct(lambda cell: json.loads(convert(cell)), data.draw(values), data.draw(values))


CANONICAL = [
    (LogicalType(Kind.BOOLEAN), st.booleans()),
    (LogicalType(Kind.INT64), INTS),
    (LogicalType(Kind.FLOAT64), FLOATS | st.sampled_from(["NaN", "Infinity", "-Infinity"])),
    (LogicalType(Kind.DECIMAL, 20, 2), HUNDREDTHS.map(lambda value: f"{cents(value):f}")),
    (LogicalType(Kind.TEXT), TEXTS),
    (LogicalType(Kind.JSON), st.sampled_from(['{"a":1}', '{"a": 1}', '{"a":1.0}', "1", '"1"'])),
    (LogicalType(Kind.BYTES), st.binary(max_size=3).map(lambda raw: b64encode(raw).decode())),
    (LogicalType(Kind.DATE), st.dates().map(date.isoformat)),
    (LogicalType(Kind.TIMESTAMP), st.datetimes().map(datetime.isoformat)),
    (LogicalType(Kind.TIMESTAMPTZ), st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")),
]
TARGETS: dict[str, Callable[[Any, Column], str]] = {
    "spark": lambda value, column: spark.literal(value, column.type),
    "postgres": PostgresSql("s").literal,
    "mysql": MysqlSql("s").literal,
    "mysql, floats as text": MysqlSql("s", Floats.TEXT).literal,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "values"), CANONICAL, ids=[str(kind) for kind, _ in CANONICAL])
@given(data=st.data())
def test_literals_of_a_target_stay_distinct(
    kind: LogicalType, values: st.SearchStrategy[Any], target: str, data: st.DataObject
) -> None:
    distinct(lambda value: TARGETS[target](value, Column("k", kind)), data.draw(values), data.draw(values))
