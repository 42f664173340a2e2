"""Two keys of a source are never one key of the copy, even where other columns are cut."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.times import timestamptz_of_text
from airflow_cdc_provider.connectors.decoders.common.values import floating
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema


def test_values_of_a_key_are_never_cut() -> None:
    def images(*key: str) -> RowImages:
        warnings: list[str] = []
        columns = tuple(Column(name, LogicalType(Kind.TIMESTAMPTZ)) for name in ("a", "b"))
        convert = [lambda value: timestamptz_of_text(value, warnings.append)] * 2
        return RowImages(TableSchema("t", columns, key), convert, warnings=warnings)

    row = {"a": "2024-02-29T12:34:56.123456789Z", "b": "2024-02-29T12:34:56.123456000Z"}
    assert images("b").key(row) == '["2024-02-29T12:34:56.123456Z"]'
    assert images("b").image(row).complete
    for convert_row in (images("a").key, images("b", "a").key, images("a").image):
        with pytest.raises(DecodeError, match=r"EVT016 .*below a microsecond, in the key"):
            convert_row(row)


def test_in_a_key_a_negative_zero_is_zero() -> None:
    schema = TableSchema("t", (Column("k", LogicalType(Kind.FLOAT64)), Column("v", LogicalType(Kind.FLOAT64))), ("k",))
    images, row = RowImages(schema, [floating, floating]), {"k": Decimal("-0.0"), "v": Decimal("-0.0")}
    assert (images.key(row), images.image(row).text) == ("[0.0]", '{"k":0.0,"v":-0.0}')
