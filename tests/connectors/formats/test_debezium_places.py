"""Where PostgreSQL's events stand when their connector has lost its offsets: the first transaction that it tells then
does not say which one ended before it."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.decoders.debezium.positions import EventPosition, postgresql
from tests.connectors.formats.debezium_messages import pg


def place(previous: int | None, lsn: int, snapshot: str = "none") -> EventPosition:
    sequence = f'["{previous}","{lsn}"]' if previous else f'[null,"{lsn}"]'
    return postgresql(pg(sequence=sequence, lsn=lsn), None, snapshot, 0, False)


def test_the_first_change_after_that_stands_behind_the_one_that_the_row_had_before() -> None:
    """That one's transaction, behind one that ended at 100, had ended at 200 when the row was changed again."""
    assert place(None, 210) > place(100, 150)
    assert place(230, 240) > place(None, 210), "its own end is told by the next one"


@pytest.mark.parametrize("lsn", [90, 110])
def test_it_stands_behind_the_row_that_a_copy_met_whenever_it_was_written(lsn: int) -> None:
    """A transaction that was open during the copy wrote before it and ended later."""
    assert place(None, lsn) > place(None, 100, "initial")


def test_what_is_told_once_more_stands_before_what_changed_it_since() -> None:
    assert place(None, 150) < place(160, 175)
