"""Which tables stand together."""

from __future__ import annotations

from airflow_cdc_provider.core.cuts import tables_of_a_cut
from airflow_cdc_provider.core.index import TableRow
from airflow_cdc_provider.core.states import TableState


def row(table: str, passed: int, state: TableState = TableState.REPLICATING) -> TableRow:
    return TableRow(table, table, state, passed=passed)


def names(*rows: TableRow) -> list[str]:
    return [one.table for one in tables_of_a_cut(rows, 5)]


def test_a_cut_waits_for_every_table_that_moves() -> None:
    assert names(row("a", 5), row("b", 5)) == ["a", "b"]
    assert names(row("a", 5), row("b", 4)) == []
    assert names(row("a", 5), row("b", 5, TableState.FAILING)) == []


def test_tables_that_may_stay_behind_for_long_are_left_out() -> None:
    others = [row(state, 1, state) for state in TableState if state not in (TableState.REPLICATING, TableState.FAILING)]
    assert names(row("a", 5), *others) == ["a"]
    assert names(*others) == []
