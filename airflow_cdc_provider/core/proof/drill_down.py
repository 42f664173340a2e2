"""Finds the intervals of the key in which two sides differ, while only sums are read.

Both sides sum up the same intervals; those that differ are divided further, until their rows are few enough to be read.
Differences everywhere need no search: dividing ends where it would not leave out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol

from airflow_cdc_provider.core.proof.key_intervals import WHOLE, IntervalSums, Key, KeyInterval

LEAF_ROWS = 256
"""An interval with fewer rows is not divided."""

READ_PART = 1000
"""Dividing ends when the intervals that differ contain at most this part of all rows."""

FIRST_INTERVALS, INTERVALS = 64, 256
"""How many intervals both sides sum up at once: all rows, or those of intervals that differ."""


class ComparedSide(Protocol):
    def sums(self, intervals: Sequence[KeyInterval]) -> Sequence[IntervalSums]:
        """Of each interval."""


class DividedSide(ComparedSide, Protocol):
    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        """The key of every ``rows``-th row of the interval, in the order of the keys; nothing if the side cannot divide
        its rows."""


@dataclass(frozen=True)
class DrillDown:
    """``source``, ``target``: the sums of all compared rows. ``differing``: the intervals that differ, with the number
    of rows of the larger side. ``summed``: how many intervals were summed up."""

    source: IntervalSums
    target: IntervalSums
    differing: tuple[tuple[KeyInterval, int], ...]
    summed: int

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.differing)


def drill_down(source: DividedSide, target: ComparedSide, rows: int, within: KeyInterval = WHOLE) -> DrillDown:
    """``rows``: about how many the source has in ``within``."""
    intervals = _divided(source, within, rows, FIRST_INTERVALS)
    sums = source.sums(intervals), target.sums(intervals)
    total, summed = (_total(sums[0]), _total(sums[1])), len(intervals)
    while True:
        differing = [
            (interval, max(expected.rows, actual.rows))
            for interval, expected, actual in zip(intervals, *sums, strict=True)
            if expected != actual
        ]
        found = DrillDown(*total, tuple(differing), summed)
        if found.rows <= max(LEAF_ROWS, total[0].rows // READ_PART) or 2 * len(differing) > INTERVALS:
            return found
        limit = INTERVALS // len(differing)
        intervals = tuple(part for interval, rows in differing for part in _divided(source, interval, rows, limit))
        if len(intervals) == len(differing):
            return found
        summed += len(intervals)
        sums = source.sums(intervals), target.sums(intervals)


def _divided(source: DividedSide, interval: KeyInterval, rows: int, limit: int) -> tuple[KeyInterval, ...]:
    parts = min(limit, ceil(rows / LEAF_ROWS))
    if parts < 2:
        return (interval,)
    cuts = [cut for cut in source.cuts(interval, ceil(rows / parts)) if cut != interval.upto]
    every = ceil((len(cuts) + 1) / limit)  # the number of rows may be an old estimate
    return interval.split(cuts[every - 1 :: every])


def _total(sums: Sequence[IntervalSums]) -> IntervalSums:
    columns = zip(*(one.columns for one in sums), strict=True)
    return IntervalSums(sum(one.rows for one in sums), tuple(map(sum, columns)))
