"""The columns of a copy beside those of its source."""

from __future__ import annotations

from airflow_cdc_provider.core.columns.copied import CopiedColumns
from airflow_cdc_provider.core.lineage.columns import ColumnPair, column_pairs
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

SOURCE = TableSchema(
    "public.t",
    (
        Column("id", LogicalType(Kind.INT64), nullable=False, native="bigint"),
        Column("email", LogicalType(Kind.TEXT), native="character varying(90)"),
        Column("word", LogicalType(Kind.TEXT), native="text"),
    ),
    ("id",),
)


def test_a_column_has_the_type_of_its_source_although_the_copy_has_another_one() -> None:
    rule = TableRule("public.t", columns=Columns(hash=("email",), rename={"word": "term"}))
    copied = TableSchema(
        "public.t", tuple(one.column for one in CopiedColumns(rule, SOURCE, b"k" * 16).columns), ("id",)
    )
    assert column_pairs(copied, ["BIGINT", "STRING", "STRING"]) == [
        ColumnPair("id", "BIGINT", "id", "bigint", key=True, nullable=False, converted=False, masked=False),
        ColumnPair("email", "STRING", "email", "character varying(90)", False, True, converted=True, masked=True),
        ColumnPair("term", "STRING", "word", "text", False, True, converted=False, masked=False),
    ]
