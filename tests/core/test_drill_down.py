"""A comparison by intervals of the key finds what differs, and reads few rows."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import pytest

from airflow_cdc_provider.core.proof.drill_down import INTERVALS, LEAF_ROWS, DrillDown, drill_down
from airflow_cdc_provider.core.proof.key_intervals import (
    WHOLE,
    IntervalSums,
    Key,
    KeyInterval,
    has_ordered_key,
    lexicographic,
    number_sql,
    within_sql,
)
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema


class Side:
    """Rows by key, in memory."""

    def __init__(self, rows: Mapping[int, int]) -> None:
        self.rows, self.keys = rows, sorted(rows)
        self.summed = 0

    def inside(self, interval: KeyInterval) -> list[int]:
        first = bisect_right(self.keys, int(interval.after[0])) if interval.after else 0
        last = bisect_right(self.keys, int(interval.upto[0])) if interval.upto else len(self.keys)
        return self.keys[first:last]

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        return [(str(key),) for key in self.inside(interval)[rows - 1 :: rows]]

    def sums(self, intervals: Sequence[KeyInterval]) -> Sequence[IntervalSums]:
        assert len(intervals) <= INTERVALS
        found = [self.inside(interval) for interval in intervals]
        self.summed += sum(map(len, found))
        return [IntervalSums(len(keys), (sum(keys), sum(self.rows[key] for key in keys))) for keys in found]


def numbered(rows: int) -> dict[int, int]:
    return {key: key * 7 for key in range(rows)}


def leaves(found: DrillDown, side: Side) -> set[int]:
    return {key for interval, _ in found.differing for key in side.inside(interval)}


def test_seven_damaged_rows_are_found_among_many_while_few_are_read() -> None:
    count = 400_000
    source, rows = Side(numbered(count)), numbered(count)
    damaged = random.Random(5).sample(range(count), 6)
    for key in damaged[:3]:
        rows[key] += 1
    for key in damaged[3:]:
        del rows[key]
    rows[2_000_000] = 1
    found = drill_down(source, Side(rows), count)
    assert leaves(found, source) >= set(damaged)
    assert leaves(found, Side(rows)) >= {2_000_000}, "a key above all of the source's"
    assert found.rows < 0.005 * count
    assert source.summed < 1.5 * count, "only what differs is summed up again"
    assert (found.source.rows, found.target.rows) == (count, count - 2)


def test_equal_sides_are_summed_up_once() -> None:
    source = Side(numbered(10_000))
    found = drill_down(source, Side(numbered(10_000)), 10_000)
    assert (found.differing, source.summed) == ((), 10_000)


@pytest.mark.parametrize("estimate", [0, 1, 300, 10_000_000])
def test_the_estimated_number_of_rows_may_be_wrong(estimate: int) -> None:
    source, rows = Side(numbered(20_000)), numbered(20_000)
    rows[12_345] = 0
    found = drill_down(source, Side(rows), estimate)
    assert leaves(found, source) >= {12_345}
    assert found.rows <= LEAF_ROWS


def test_differences_everywhere_end_the_search() -> None:
    source, rows = Side(numbered(50_000)), dict.fromkeys(range(50000), 0)
    found = drill_down(source, Side(rows), 50_000)
    assert leaves(found, source) == set(range(1, 50_000)) | {0}
    assert source.summed <= 3 * 50_000


@pytest.mark.parametrize("extra", [1, 400, 5_000])
def test_rows_that_only_the_target_has_end_the_search_where_the_source_cannot_be_divided(extra: int) -> None:
    source = Side(numbered(1_000))
    target = Side(numbered(1_000) | {5_000 + key: 1 for key in range(extra)})
    found = drill_down(source, target, 1_000)
    assert leaves(found, target) >= set(range(5_000, 5_000 + extra))


def test_a_side_that_cannot_divide_its_rows_is_compared_as_a_whole() -> None:
    class Undivided(Side):
        def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
            return ()

    rows = numbered(2_000)
    rows[3] = 0
    found = drill_down(Undivided(numbered(2_000)), Side(rows), 2_000)
    assert found.differing == ((WHOLE, 2_000),)


def test_an_interval_is_found_by_a_binary_search() -> None:
    intervals = WHOLE.split([("10",), ("20",), ("30",)])

    def up_to(key: Key) -> str:
        return f"id <= {key[0]}"

    assert number_sql(intervals, up_to) == (
        "CASE WHEN id <= 20 THEN CASE WHEN id <= 10 THEN 0 ELSE 1 END ELSE CASE WHEN id <= 30 THEN 2 ELSE 3 END END"
    )
    assert number_sql([WHOLE], up_to) == "0"


def test_adjacent_intervals_are_one_condition() -> None:
    intervals = WHOLE.split([("10",), ("20",), ("30",)])

    def within(*chosen: int) -> str:
        parts = [intervals[number] for number in chosen]
        return within_sql(parts, lambda key: f"id > {key[0]}", lambda key: f"id <= {key[0]}")

    assert within(0, 1, 2, 3) == ""
    assert within(0, 1) == "((id <= 20))"
    assert within(1, 3) == "((id > 10 AND id <= 20) OR (id > 30))"


def test_composite_keys_are_compared_column_by_column() -> None:
    assert lexicographic(["a", "b"], ["1", "2"], "<=") == "(a < 1 OR (a = 1 AND b <= 2))"
    assert lexicographic(["a", "b", "c"], ["1", "2", "3"], ">") == "(a > 1 OR (a = 1 AND (b > 2 OR (b = 2 AND c > 3))))"


@pytest.mark.parametrize(
    ("kind", "nullable", "ordered"),
    [
        (Kind.INT64, False, True),
        (Kind.TEXT, False, True),
        (Kind.INT64, True, False),
        (Kind.FLOAT64, False, False),
        (Kind.BYTES, False, False),
    ],
)
def test_only_keys_that_every_system_orders_alike_are_divided(kind: Kind, nullable: bool, ordered: bool) -> None:
    columns = (Column("id", LogicalType(kind), nullable), Column("v", LogicalType(Kind.TEXT)))
    assert has_ordered_key(TableSchema("t", columns, ("id",))) is ordered
    assert not has_ordered_key(TableSchema("t", columns))
