"""Every kind of value into a database and back, by a copy and by a merge, to the same bytes."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections import Secrets
from airflow_cdc_provider.core.definition import Target
from airflow_cdc_provider.core.steps import Outcome, StepKind
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from spark_jobs.writers import open_writer
from tests.spark.databases import Database
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

TEXT = 'it\'s a "test", \\ {a,b}\n\\.\n\t€ 𝄞 \x7f %s'
FIELDS: dict[str, tuple[LogicalType, list[Any], list[Any]]] = {
    "b": (LogicalType(Kind.BOOLEAN), [True, False], [True, False]),
    "i2": (LogicalType(Kind.INT16), [-32768, 32767], [-32768, 32767]),
    "i4": (LogicalType(Kind.INT32), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    "i8": (LogicalType(Kind.INT64), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "f4": (LogicalType(Kind.FLOAT32), [1.1, 3.4028235e38], [1.1, 3.4028235e38]),
    "f8": (LogicalType(Kind.FLOAT64), [0.1, 1.7976931348623157e308], [0.1, 1.7976931348623157e308]),
    "d": (
        LogicalType(Kind.DECIMAL, 38, 10),
        ["-9999999999999999999999999999.9999999999", "0.0000000001"],
        [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.0000000001")],
    ),
    "deep": (LogicalType(Kind.DECIMAL, 38, 38), ["0." + "1" * 38, "0." + "0" * 37 + "1"], []),
    "t": (LogicalType(Kind.TEXT), [TEXT, ""], [TEXT, ""]),
    "j": (LogicalType(Kind.JSON), ['{"b": 1,  "a": [1.0, null]}', '"x"'], []),
    "u": (LogicalType(Kind.UUID), ["0d9c1d3c-9a4f-4d2a-8a44-000000000001"] * 2, []),
    "y": (LogicalType(Kind.BYTES), [b64encode(bytes(range(256))).decode(), ""], [bytes(range(256)), b""]),
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
}
KEY = Column("id", LogicalType(Kind.INT32), nullable=False)
SCHEMA = TableSchema("public.t", (KEY, *(Column(name, kind) for name, (kind, _, _) in FIELDS.items())), ("id",))
FLOATS = TableSchema("public.t", (KEY, Column("f", LogicalType(Kind.FLOAT64))), ("id",))


def row(key: int, place: int | None) -> Row:
    return {"id": key, **{name: None if place is None else given[place] for name, (_, given, _) in FIELDS.items()}}


def test_values_come_back_exactly_from_a_copy_and_from_a_merge(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    table = warehouse.table(spark, tmp_path, SCHEMA)
    table.copy([row(1, 0), row(2, 1), row(3, None)])
    result = table.apply([table.insert(row(11, 0)), table.insert(row(12, 1)), table.insert(row(13, None))])
    assert result.outcome is Outcome.DONE, result.problem
    names = [name for name, (_, _, native) in FIELDS.items() if native]
    rows = {one[0]: one[1:] for one in warehouse.rows(("id", *names))}
    assert [in_python(value) for value in rows[1]] == [FIELDS[name][2][0] for name in names]
    assert [in_python(value) for value in rows[2]] == [FIELDS[name][2][1] for name in names]
    assert set(rows[3]) == {None}
    held = {one[0]: one[1:] for one in table.rows()}
    assert [held[key] for key in (11, 12, 13)] == [held[key] for key in (1, 2, 3)]
    back = dict(zip(SCHEMA.names[1:], held[1], strict=True))
    assert back["deep"] == Decimal("0." + "1" * 38) and back["u"] == FIELDS["u"][1][0]
    assert (back["day"], back["at"]) == (date(1, 1, 1), datetime(1, 1, 1, 0, 0, 0, 1))
    assert (
        back["t"] == TEXT
        and back["j"] == FIELDS["j"][1][0]
        and bytes(back["y"]) == bytes(range(256))
        and back["b"] is True
    )
    assert {name: str(kind) for name, kind in types(table).items()} == spark_types()


def in_python(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def types(table: HandMade) -> dict[str, Any]:
    tables = table.job(StepKind.STAGE, ()).tables
    frame = open_writer(table.definition.target.type, table.spark, tables).read(table.task(), None)
    return {name: kind for name, kind in frame.dtypes if not name.startswith("_cdc_")}


def spark_types() -> dict[str, str]:
    kinds = ["int", "boolean", "smallint", "int", "bigint", "float", "double", "decimal(38,10)", "decimal(38,38)"]
    kinds += ["string", "string", "string", "binary", "date", "timestamp_ntz", "timestamp"]
    return dict(zip(SCHEMA.names, kinds, strict=True))


def test_numbers_that_are_none_are_kept_or_refused_with_words(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    table = warehouse.table(spark, tmp_path, FLOATS)
    table.copy([{"id": 1, "f": 1.5}])
    result = table.apply([table.insert({"id": 2, "f": "NaN"}), table.insert({"id": 3, "f": "-Infinity"})])
    if warehouse.kind == "postgres":
        assert [str(value) for _, value in warehouse.rows(("id", "f"))] == ["1.5", "nan", "-inf"]
        return
    assert result.outcome is Outcome.BLOCKED and result.problem is not None
    assert result.problem.code == "TGT063" and "floats: text" in result.problem.do and "NaN" not in result.problem.found
    assert warehouse.rows(("id", "f")) == [(1, 1.5)]


def test_floats_as_text_keep_what_mysql_has_no_number_for(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    if warehouse.kind != "mysql":
        pytest.skip("PostgreSQL has a number for each")
    options = {"schema": warehouse.schema, "floats": "text"}
    target = Target("mysql", connection="warehouse", options=options)
    table = HandMade(spark, tmp_path, FLOATS, target=target, secrets=Secrets(target=warehouse.connection))
    table.copy([{"id": 1, "f": -0.0}])
    table.apply([table.insert({"id": 2, "f": "NaN"}), table.insert({"id": 3, "f": "-Infinity"})])
    back = [value for _, value in table.rows()]
    assert math.copysign(1, back[0]) == -1 and math.isnan(back[1]) and back[2] == -math.inf


def test_a_text_that_is_too_long_for_a_key_blocks_the_table_without_showing_it(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    schema = TableSchema("public.t", (Column("k", LogicalType(Kind.TEXT), nullable=False),), ("k",))
    table = warehouse.table(spark, tmp_path, schema)
    table.copy([{"k": "a"}, {"k": "a "}, {"k": "A"}])
    assert sorted(warehouse.rows(("k",))) == [("A",), ("a",), ("a ",)]
    result = table.apply([table.insert({"k": "secret " * 2_000})])
    if result.outcome is not Outcome.DONE:
        assert result.problem is not None and result.problem.code == "TGT063" and "secret" not in str(result.problem)
