"""Corrections of a bad record: about its own row only, with values that its columns have."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.corrections import CorrectedTable, canonical_values
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Origin, TableSchema

TEXT, PRICE = LogicalType(Kind.TEXT), LogicalType(Kind.DECIMAL, 30, 2)
COLUMNS = (Column("region", TEXT, False, origin=Origin("", TEXT)), Column("id", TEXT), Column("price", PRICE))
SHARED = CorrectedTable("shop.t", TableSchema("shop.t", COLUMNS, ("region", "id")), OwnRows(COLUMNS[0], "north"))
ALONE = CorrectedTable("shop.t", TableSchema("shop.t", COLUMNS[1:], ("id",)))


def bad(op: str = "unreadable", key: str | None = None) -> ChangeRecord:
    return ChangeRecord("shop.t", op, "01", "s", key=None if op == "delete" else key, key_before=key, after="{}")


def code_of(table: CorrectedTable, record: ChangeRecord, **given: str | None) -> str:
    with pytest.raises(CommandRefused) as refused:
        canonical_values(table, record, given)
    return refused.value.problems[0].code


def test_the_key_of_a_corrected_record_is_the_one_that_other_records_of_the_row_have() -> None:
    """Records of a row are found by the text of its key."""
    assert canonical_values(ALONE, bad(), {"id": "815", "price": "1.5"}) == {"id": "815", "price": "1.50"}


@pytest.mark.parametrize("op", ["unreadable", "insert", "delete"])
def test_a_key_that_is_known_keeps_its_value(op: str) -> None:
    record = bad(op, '["815"]')
    assert code_of(ALONE, record, id="816") == "CLI026"
    assert canonical_values(ALONE, record, {"id": "815", "price": None}) == {"id": "815", "price": None}


def test_a_row_of_a_shared_table_stays_among_those_of_its_copy() -> None:
    assert code_of(SHARED, bad(), region="south", id="1", price="1") == "CLI026"
    assert code_of(SHARED, bad(key='["north","1"]'), region="south") == "CLI026"
    assert canonical_values(SHARED, bad(), {"region": "north"}) == {"region": "north"}


def test_what_no_column_has_is_refused() -> None:
    assert code_of(ALONE, bad(), id=None) == "CLI025"
    assert code_of(ALONE, bad(), price="1.005") == "CLI025"
    assert code_of(ALONE, bad(), prise="1") == "CLI016"
    assert code_of(CorrectedTable("shop.t", None), bad(), id="1") == "CLI016"
