"""Which full snapshot in a topic begins it anew."""

from __future__ import annotations

from airflow_cdc_provider.core.snapshots import CHANGES, Snapshot, first_restart, joined, of_all_tables, unfinished

FIRST = Snapshot("pg", "pg.s.t", "a", 10, ended=True, whole=True)
STREAMED = Snapshot("pg", "pg.s.t", CHANGES, 20)
SECOND = Snapshot("pg", "pg.s.t", "b", 30, whole=True)


def test_the_first_snapshot_of_a_topic_is_no_restart() -> None:
    assert first_restart((), (FIRST, STREAMED)) is None
    assert first_restart((FIRST,), (FIRST, STREAMED)) is None, "spread over windows"


def test_a_snapshot_behind_another_or_behind_changes_is_a_restart() -> None:
    assert first_restart((FIRST,), (SECOND,)) == SECOND
    assert first_restart((STREAMED,), (SECOND,)) == SECOND
    assert first_restart((), (SECOND, FIRST)) == SECOND, "in whatever order shares were read"
    assert first_restart((FIRST, SECOND), (SECOND,)) is None, "it is known"


def test_the_earliest_restart_counts() -> None:
    third = Snapshot("pg", "pg.s.t", "c", 40)
    assert first_restart((FIRST,), (third, SECOND)) == SECOND


def test_a_first_snapshot_that_was_interrupted_needs_no_operator() -> None:
    begun = Snapshot("pg", "pg.s.t", "a", 10)
    assert unfinished(SECOND, (begun, SECOND))
    assert not unfinished(SECOND, (FIRST, SECOND))
    assert not unfinished(SECOND, (begun, STREAMED, SECOND))


def test_tables_without_rows_are_empty_only_where_no_operator_asked_for_the_snapshot() -> None:
    assert of_all_tables(SECOND, (FIRST, STREAMED, SECOND))
    assert not of_all_tables(SECOND, (FIRST, SECOND)), "nothing was streamed yet: it may be an operator's"
    part = Snapshot("my", "my.s.t", "b", 30)
    assert not of_all_tables(part, (Snapshot("my", "my.s.t", CHANGES, 20), part))


def test_entries_of_one_snapshot_are_joined() -> None:
    later = Snapshot("pg", "pg.s.t", "a", 12)
    assert joined((later, FIRST)) == (FIRST,)
