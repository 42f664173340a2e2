"""Change records from before an alteration of the target, read as rows of its schema now."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema, parse_type
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.earlier_rows import conversions, converted, under_later_names

ID = Column("id", LogicalType(Kind.INT32), False)
V = Column("v", LogicalType(Kind.TEXT))
V2, W = replace(V, id="1"), Column("w", LogicalType(Kind.TEXT), id="2")


def table(*columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema("t", (ID, *columns), key)


def read(earlier: TableSchema, later: TableSchema, renamed: dict[str, str], **record: Any) -> dict[str, Any]:
    """One record of each schema; returns the earlier one."""
    texts = {name: record.get(name) for name in ("key_before", "key", "before", "after")}
    rows = [{**texts, "schema_id": "earlier"}, {**texts, "schema_id": "later"}]
    names = [*texts, "schema_id"]
    records = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in names})
    by_schema = conversions({"earlier": earlier, "later": later}, later, lambda _: renamed)
    found = converted(converted(records, by_schema), by_schema).to_pylist()
    assert found[1] == rows[1], "a record of the later schema stays as it is"
    return found[0]


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        ("int32", "int64", "7", "7"),
        ("float32", "float64", "0.1", "0.10000000149011612"),
        ("float32", "float64", '"NaN"', '"NaN"'),
        ("float32", "float64", "null", "null"),
        ("date", "timestamp", '"2026-01-02"', '"2026-01-02T00:00:00"'),
        ("decimal(10,2)", "decimal(14,2)", '"1.50"', '"1.50"'),
        ("decimal(10,2)", "decimal(14,4)", '"1.50"', '"1.5000"'),
        ("decimal(10,2)", "decimal(20,10)", '"0.00"', '"0.0000000000"'),
        ("decimal(36,2)", "decimal(38,4)", f'"{"1" * 34}.50"', f'"{"1" * 34}.5000"'),
        ("decimal(10,2)", "decimal(14,4)", '"NaN"', '"NaN"'),
        ("decimal(10,2)", "decimal(14,4)", '"Infinity"', '"Infinity"'),
    ],
)
def test_a_value_has_the_text_of_the_wider_type(old: str, new: str, value: str, expected: str) -> None:
    earlier, later = (table(Column("c", parse_type(kind))) for kind in (old, new))
    image = '{"id":1,"c":%s}'
    found = read(earlier, later, {}, key="[1]", after=image % value, before=image % "null")
    assert found["after"] == image % expected and found["before"] == image % "null" and found["key"] == "[1]"


@pytest.mark.parametrize(
    ("columns", "later", "image", "expected"),
    [
        ((V2,), (replace(V, id="3"),), '{"id":1,"v":"old"}', '{"id":1}'),
        ((V2, W), (replace(W, name="v"),), '{"id":1,"v":"old","w":"x"}', '{"id":1,"v":"x"}'),
        ((W, V2), (replace(W, name="v"),), '{"id":1,"w":"x","v":"old"}', '{"id":1,"v":"x"}'),
    ],
    ids=["another column", "a renamed one", "a renamed one before it"],
)
def test_a_value_does_not_become_that_of_another_column_under_its_name(
    columns: tuple[Column, ...], later: tuple[Column, ...], image: str, expected: str
) -> None:
    found = read(table(*columns), table(*later), {}, key="[1]", after=image)
    assert json.loads(found["after"]) == json.loads(expected)


def test_a_key_has_the_text_of_the_wider_type() -> None:
    earlier, later = (table(Column("d", LogicalType(kind)), key=("id", "d")) for kind in (Kind.DATE, Kind.TIMESTAMP))
    found = read(earlier, later, {}, key_before='[1,"2026-01-02"]', key='[2,"2026-01-03"]')
    assert json.loads(found["key_before"]) == [1, "2026-01-02T00:00:00"]
    assert json.loads(found["key"]) == [2, "2026-01-03T00:00:00"]


@pytest.mark.parametrize(("number", "renamed"), [("2", {}), ("", {"v": "w"})], ids=["by id", "by an answer"])
def test_a_renamed_column_has_its_new_name(number: str, renamed: dict[str, str]) -> None:
    earlier = table(replace(V, id=number))
    later = table(replace(V, name="w", id=number))
    assert read(earlier, later, renamed, after='{"id":1,"v":"x"}')["after"] == '{"id":1,"w":"x"}'


def test_a_column_that_is_not_the_same_keeps_its_name() -> None:
    earlier, later = table(V), table(replace(V, name="w"))
    assert read(earlier, later, {}, after='{"id":1,"v":"x"}')["after"] == '{"id":1,"v":"x"}'


@pytest.mark.parametrize(("number", "renamed"), [("2", {}), ("", {"v": "w"})], ids=["by id", "by an answer"])
def test_rows_from_before_a_rename_have_the_initial_values_of_new_columns_alone(
    number: str, renamed: dict[str, str]
) -> None:
    """The renamed column has an initial value as well, and a new one has its former name."""
    old = replace(V, id=number, initial='"first"')
    new = Column("v", LogicalType(Kind.INT32), initial="3", id="3" if number else "")
    earlier, later = table(old), table(replace(old, name="w"), new)
    images = ImageColumns(later, {"earlier": under_later_names(earlier, later, renamed)})
    assert images.initials() == {"earlier": {"v": "3"}}
