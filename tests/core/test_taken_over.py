"""Which settings of columns the rows of an existing table cannot follow."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.columns.taken_over import other_values
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

COLUMNS = tuple(Column(name, LogicalType(Kind.TEXT)) for name in ("id", "email", "amount"))


@pytest.mark.parametrize(
    ("columns", "key", "found"),
    [
        (Columns(), ("id",), None),
        (Columns(hash=("email",)), ("id",), "columns.hash: email"),
        (Columns(hash=("id",)), ("id",), "columns.hash: id"),
        (Columns(mask={"email": 2}, truncate={"amount": 3}), ("id",), "columns.mask: email, columns.truncate: amount"),
        (Columns(hash=("mail",), rename={"mail": "email"}), ("id",), "columns.hash: mail"),
        (Columns(hash=("of_another_table",)), ("id",), None),
        (Columns(cast={"amount": "text"}), ("id",), None),
        (Columns(cast={"id": "text"}), ("id",), "columns.cast: id"),
        (Columns(cast={"amount": "text"}), (), "columns.cast: amount"),
    ],
)
def test_existing_rows_have_neither_hidden_values_nor_cast_keys(
    columns: Columns, key: tuple[str, ...], found: str | None
) -> None:
    problem = other_values(TableRule("s.t", columns=columns), TableSchema("s.t", COLUMNS, key), "lake/t")
    assert (problem and problem.found) == found
    assert problem is None or (problem.code, problem.where) == ("CPY023", "lake/t")
