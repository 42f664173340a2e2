"""Which full snapshot in a topic replaces the earlier content."""

from __future__ import annotations

from airflow_cdc_provider.core.log.snapshots import (
    CHANGES,
    SourceSnapshot,
    covers_all_tables,
    find_restarts,
    follows_interrupted_snapshot,
    merge_snapshots,
)

FIRST = SourceSnapshot("pg", "pg.s.t", "a", 10, ended=True, whole=True)
STREAMED = SourceSnapshot("pg", "pg.s.t", CHANGES, 20)
SECOND = SourceSnapshot("pg", "pg.s.t", "b", 30, whole=True)


def test_the_first_snapshot_of_a_topic_is_no_restart() -> None:
    assert find_restarts((), (FIRST, STREAMED)) == ()
    assert find_restarts((FIRST,), (FIRST, STREAMED)) == (), "spread over windows"


def test_a_snapshot_behind_another_or_behind_changes_is_a_restart() -> None:
    assert find_restarts((FIRST,), (SECOND,)) == (SECOND,)
    assert find_restarts((STREAMED,), (SECOND,)) == (SECOND,)
    assert find_restarts((), (SECOND, FIRST)) == (SECOND,), "in whatever order splits were read"
    assert find_restarts((FIRST, SECOND), (SECOND,)) == (), "the snapshot is in an earlier window"


def test_the_earliest_restart_counts() -> None:
    third = SourceSnapshot("pg", "pg.s.t", "c", 40)
    assert find_restarts((FIRST,), (third, SECOND)) == (SECOND,)


def test_the_snapshots_of_each_connector_are_counted_apart() -> None:
    other = [SourceSnapshot("my", "my.s.t", "a", 11), SourceSnapshot("my", "my.s.t", "b", 70)]
    assert set(find_restarts((FIRST, other[0]), (other[1], SECOND))) == {SECOND, other[1]}


def test_an_interrupted_first_snapshot_needs_no_operator() -> None:
    begun = SourceSnapshot("pg", "pg.s.t", "a", 10)
    assert follows_interrupted_snapshot(SECOND, (begun, SECOND))
    assert not follows_interrupted_snapshot(SECOND, (FIRST, SECOND))
    assert not follows_interrupted_snapshot(SECOND, (begun, STREAMED, SECOND))


def test_tables_without_rows_are_empty_only_if_no_operator_requested_the_snapshot() -> None:
    assert covers_all_tables(SECOND, (FIRST, STREAMED, SECOND))
    assert not covers_all_tables(SECOND, (FIRST, SECOND)), "without streamed changes it may be a request of an operator"
    part = SourceSnapshot("my", "my.s.t", "b", 30)
    assert not covers_all_tables(part, (SourceSnapshot("my", "my.s.t", CHANGES, 20), part))


def test_entries_of_one_snapshot_are_joined() -> None:
    later = SourceSnapshot("pg", "pg.s.t", "a", 12)
    assert merge_snapshots((later, FIRST)) == (FIRST,)


def backfill(minute: int) -> SourceSnapshot:
    return SourceSnapshot("d.t", "d.t", f"backfill {minute}", minute * 60_000, backfill=True)


def test_the_first_backfill_of_a_table_is_no_restart() -> None:
    """It overlaps with changes, which are not looked at, and may be in several windows and files of any order."""
    assert find_restarts((), (backfill(1),)) == find_restarts((backfill(1),), (backfill(1),)) == ()
    assert find_restarts((backfill(9),), (backfill(1), backfill(18))) == (), "parts of one that name other minutes"


def test_a_second_backfill_of_a_table_is_a_restart_whichever_arrives_first() -> None:
    first, second = backfill(1), backfill(60)
    assert find_restarts((first,), (first, second)) == (second,)
    assert find_restarts((second,), (first,)) == (first,)
    assert len(find_restarts((), (second, first))) == 1
    assert find_restarts((first, second), (first, second, backfill(61))) == (), "it is in an earlier window"
    assert find_restarts((first,), (SourceSnapshot("d.u", "d.u", "backfill 60", second.at_ms, backfill=True),)) == ()
