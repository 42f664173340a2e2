"""What a control record keeps of columns that the target still has and the copy has no more."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.table.former_columns import former_after, with_other_types
from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type


def schema(**columns: str) -> TableSchema:
    named = (Column(name, parse_type(kind)) for name, kind in columns.items())
    return TableSchema("s.t", (Column("id", parse_type("int32"), nullable=False), *named), ("id",))


def test_a_column_is_a_former_one_from_its_drop_until_its_name_is_used_again() -> None:
    former = former_after({}, schema(c="decimal(10,2)", d="text"), schema(d="text"))
    assert former == {"c": "decimal(10,2)"}
    former = former_after(former, schema(d="text"), schema())
    assert former == {"c": "decimal(10,2)", "d": "text"}
    assert former_after(former, schema(), schema(c="decimal(12,4)")) == {"d": "text"}


@pytest.mark.parametrize(
    ("name", "kind", "differs"),
    [
        ("c", "decimal(12,4)", True),
        ("C", "decimal(12,4)", True),
        ("c", "decimal(10,2)", False),
        ("n", "int64", False),
        ("x", "text", False),
    ],
)
def test_a_new_column_may_have_the_name_of_a_former_one_that_is_stored_alike(
    name: str, kind: str, differs: bool
) -> None:
    former = {"c": "decimal(10,2)", "n": "int32"}

    def stored_as(column: Column) -> str:
        return "INT64" if str(column.type).startswith("int") else str(column.type)

    column = Column(name, parse_type(kind))
    assert with_other_types(former, [column], str.lower, stored_as) == ([name] if differs else [])
