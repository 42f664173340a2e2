"""The columns of a schema, by their names."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema


def test_a_column_that_is_not_there_is_named_and_ends_no_loop() -> None:
    schema = TableSchema("Account", (Column("Id", LogicalType(Kind.TEXT)),), ("Id",))
    assert schema.column("Id") is schema.columns[0]
    with pytest.raises(KeyError, match="Account has no column Nothing"):
        list(map(schema.column, ("Id", "Nothing")))
