"""Values of every kind, with the limits of their ranges, into a target and back, by a copy and by a merge."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from ctypes import c_float
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.scripted_table import Row

pytestmark = pytest.mark.jvm

TEXT = 'it\'s a "test", \\ {a,b}\n\\.\n\t€ 𝄞 \x7f %s \u2028'
DEEP = ["0." + "1" * 38, "0." + "0" * 37 + "1"]
WIDE = ["-9999999999999999999999999999.9999999999", "0.0000000001"]
DOCUMENTS = ['{"b": 1,  "a": [1.0, null]}', '"x"']
UUIDS = ["0d9c1d3c-9a4f-4d2a-8a44-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"]
BYTES = bytes(range(256))

FIELDS: dict[str, tuple[LogicalType, list[Any], list[Any]]] = {
    "b": (LogicalType(Kind.BOOLEAN), [True, False], [True, False]),
    "i2": (LogicalType(Kind.INT16), [-32768, 32767], [-32768, 32767]),
    "i4": (LogicalType(Kind.INT32), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    "i8": (LogicalType(Kind.INT64), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "f4": (LogicalType(Kind.FLOAT32), [1.1, 3.4028235e38], [c_float(1.1).value, c_float(3.4028235e38).value]),
    "f8": (LogicalType(Kind.FLOAT64), [0.1, 1.7976931348623157e308], [0.1, 1.7976931348623157e308]),
    "d": (LogicalType(Kind.DECIMAL, 38, 10), WIDE, [Decimal(text) for text in WIDE]),
    "deep": (LogicalType(Kind.DECIMAL, 38, 38), DEEP, [Decimal(text) for text in DEEP]),
    "t": (LogicalType(Kind.TEXT), [TEXT, ""], [TEXT, ""]),
    "j": (LogicalType(Kind.JSON), DOCUMENTS, DOCUMENTS),
    "u": (LogicalType(Kind.UUID), UUIDS, UUIDS),
    "y": (LogicalType(Kind.BYTES), [b64encode(BYTES).decode(), ""], [BYTES, b""]),
    "day": (LogicalType(Kind.DATE), ["0001-01-01", "9999-12-31"], [date(1, 1, 1), date(9999, 12, 31)]),
    "at": (
        LogicalType(Kind.TIMESTAMP),
        ["0001-01-01T00:00:00.000001", "9999-12-31T23:59:59.999999"],
        [datetime(1, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    ),
    "atz": (
        LogicalType(Kind.TIMESTAMPTZ),
        ["1969-12-31T23:59:59.999999Z", "2038-01-20T00:00:00.5Z"],
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2038, 1, 20, 0, 0, 0, 500000)],
    ),
    "with space, comma; and (brackets)": (LogicalType(Kind.TEXT), ["named", None], ["named", None]),
}
WIDER = {"smallint": "int"}
"""Iceberg has no shorter integers."""

SPARK_TYPES = [
    *("boolean", "int", "int", "bigint", "float", "double", "decimal(38,10)", "decimal(38,38)"),
    *("string", "string", "string", "binary", "date", "timestamp_ntz", "timestamp", "string"),
]
KEY = Column("id", LogicalType(Kind.INT32), nullable=False)
SCHEMA = TableSchema("public.t", (KEY, *(Column(name, kind) for name, (kind, _, _) in FIELDS.items())), ("id",))


def row(key: int, index: int | None) -> Row:
    return {"id": key, **{name: None if index is None else given[index] for name, (_, given, _) in FIELDS.items()}}


def test_values_come_back_exactly_from_a_copy_and_from_a_merge(kit: TargetKit, tmp_path: Path) -> None:
    """Read by another library, and by our own reader, on which verify and the next batch rely."""
    table = KitTable(kit, tmp_path, SCHEMA)
    table.copy([row(1, 0), row(2, 1), row(3, None)])
    changes = [table.insert(row(11, 0)), table.insert(row(12, 1)), table.insert(row(13, None)), table.update(row(2, 0))]
    result = table.apply(changes)
    assert result.outcome is Outcome.DONE, result.problem
    wanted = {1: 0, 2: 0, 3: None, 11: 0, 12: 1, 13: None}
    read = table.read_at(None).selectExpr("id", *(f"`{name}`" for name in FIELDS))
    kinds = [kind for _, kind in read.dtypes[1:]]
    assert [WIDER.get(kind, kind) for kind in kinds] == SPARK_TYPES
    for found in (table.rows(), read.withColumn("atz", read["atz"].cast("timestamp_ntz")).collect()):
        assert {one[0]: plain(one[1:]) for one in found} == {key: values(index) for key, index in wanted.items()}


def values(index: int | None) -> list[Any]:
    return [None if index is None else native[index] for _, _, native in FIELDS.values()]


def plain(found: Sequence[Any]) -> list[Any]:
    """Without the differences between clients: the zone of a timestamp, the types of bytes and UUIDs, the digits of
    a short float. MySQL keeps a decimal as text if it has too many digits after the point."""
    return [_plain(value, kind.kind) for value, (kind, _, _) in zip(found, FIELDS.values(), strict=True)]


def _plain(value: Any, kind: Kind) -> Any:
    match value:
        case float() if kind is Kind.FLOAT32:
            return c_float(value).value
        case int() if kind is Kind.BOOLEAN:
            return bool(value)
        case str() if kind is Kind.DECIMAL:
            return Decimal(value)
        case memoryview() | bytearray():
            return bytes(value)
        case UUID():
            return str(value)
        case datetime(tzinfo=zone) if zone is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case _:
            return value
