"""The order of PostgreSQL's events after their connector has lost its offsets: its first transaction then
does not contain the end of the transaction before it."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.decoders.debezium.positions import EventPosition, postgresql
from tests.connectors.formats.debezium_messages import pg


def position(previous: int | None, lsn: int, snapshot: str = "none") -> EventPosition:
    sequence = f'["{previous}","{lsn}"]' if previous else f'[null,"{lsn}"]'
    return postgresql(pg(sequence=sequence, lsn=lsn), None, snapshot, 0, False)


def test_the_first_change_after_a_restart_is_ordered_after_the_last_change_of_the_row() -> None:
    """The transaction of that change, after one that ended at 100, ended at 200 before the row changed again."""
    assert position(None, 210) > position(100, 150)
    assert position(230, 240) > position(None, 210), "the next transaction contains its end"


@pytest.mark.parametrize("lsn", [90, 110])
def test_it_is_ordered_after_the_row_of_a_copy_whenever_it_was_written(lsn: int) -> None:
    """A transaction that was open during the copy wrote before it and ended later."""
    assert position(None, lsn) > position(None, 100, "initial")


def test_a_change_that_is_sent_again_is_ordered_before_later_changes_of_the_row() -> None:
    assert position(None, 150) < position(160, 175)
