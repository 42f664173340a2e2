"""Which tables are in the published cut."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import select_cut_tables
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState


def row(table: str, passed: int, state: TableState = TableState.REPLICATING) -> TableRow:
    return TableRow(table, table, state, passed=passed)


def names(*rows: TableRow) -> list[str]:
    return [one.table for one in select_cut_tables(rows, 5)]


def test_a_cut_waits_for_every_replicating_table() -> None:
    assert names(row("a", 5), row("b", 5)) == ["a", "b"]
    assert names(row("a", 5), row("b", 4)) == []
    assert names(row("a", 5), row("b", 5, TableState.FAILING)) == []


def test_tables_that_may_lag_for_long_are_left_out() -> None:
    others = [row(state, 1, state) for state in TableState if state not in (TableState.REPLICATING, TableState.FAILING)]
    assert names(row("a", 5), *others) == ["a"]
    assert names(*others) == []


def test_a_table_whose_copy_was_not_exact_is_left_out_until_it_has_caught_up() -> None:
    record = ControlRecord("r", "b", "log", "me", "a", 1, 3, "f", State(TableState.REPLICATING, "2026-01-01"), high=5)
    behind, past = replace(row("b", 4), control=record), replace(row("b", 5), control=record)
    assert names(row("a", 5), behind) == ["a"]
    assert names(row("a", 5), past) == ["a", "b"]
