"""From where to where a table is read next. Pure.

Interval: ``upto of the last one - timestamp_latency <= timestamp <= source's clock - commit_latency``. So a change is
read if it was committed at most both latencies after its timestamp: in the interval that was planned next after its
commit, or, where its timestamp is younger, in a later one. An interval that was left open goes on where its last page
ended, under the same end: a change in bulk that is larger than a window comes to an end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from airflow_cdc_provider.connectors.source import SourceStatus, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PollPosition,
    floor_key,
    microseconds,
    poll_position,
    poll_positions,
    position_of,
)
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.log.positions import Position

IDLE_FOR = timedelta(hours=1)
"""A table in which nothing happens is moved on when its interval is longer, not at every tick."""


def deletes_since(lo: PollPosition, options: PollingOptions) -> datetime:
    """From when on deleted rows are to be asked for: those before the last audit are known."""
    late = options.commit_latency + options.timestamp_latency
    return max(lo.upto - options.timestamp_latency, lo.audited - late)


class PollQueries(Protocol):
    def __call__(self, table: str, lo: PollPosition, limit: PollPosition) -> bool:
        """Whether the interval holds anything."""


@dataclass(frozen=True)
class Clock:
    """What a plan is made by: the source's time and the options. ``whole`` are tables that no column tells of: they
    are copied anew in every run. ``forgets``: how long the source tells of deleted rows, where it does at all.
    ``schemas``: table -> id of its schema now, where the source shows it."""

    now: datetime
    options: PollingOptions
    whole: frozenset[str] = frozenset()
    forgets: timedelta | None = None
    schemas: Mapping[str, str] = field(default_factory=dict)

    def first(self, table: str) -> PollPosition:
        """Where a table starts that is copied from now on."""
        upto = self.now - self.options.commit_latency
        return PollPosition(microseconds(self.now), upto, self.now, schema=self.schemas.get(table, ""))

    def planned(self, place: PollPosition, table: str) -> PollPosition:
        """Where the next reading of the table ends. The source's clock may have gone back; a place never does."""
        number, upto, audited = max(place.round + 1, microseconds(self.now)), place.upto, place.audited
        if self.is_audit_due(place):
            audited = self.now
        elif not place.after:
            upto = max(upto, self.now - self.options.commit_latency)
        return PollPosition(number, upto, audited, schema=self.schemas.get(table, place.schema))

    def is_audit_due(self, place: PollPosition) -> bool:
        every, unseen = self.options.key_audit, self.now - max(place.upto, place.audited)
        due = every is not None and self.now - place.audited >= every
        return place.after is None and (due or (self.forgets is not None and unseen >= self.forgets))


def is_audit(lo: PollPosition, limit: PollPosition) -> bool:
    """The reading asks for a comparison of keys, and for nothing else."""
    return lo.audited != limit.audited


def is_altered(lo: PollPosition, limit: PollPosition) -> bool:
    """The schema is not the one of the last reading. The columns come at once, also where no row changes."""
    return lo.schema != limit.schema


def status_of(position: Position, tables: Sequence[str], clock: Clock, asks: PollQueries) -> SourceStatus:
    """Every table is asked for by itself. ``limit`` has the tables that are to be read, and no other."""
    reading: dict[str, PollPosition] = {}
    moving: dict[str, PollPosition] = {}
    for table, lo in poll_positions(position, tables).items():
        limit = clock.planned(lo, table)
        due = table in clock.whole or lo.after or is_audit(lo, limit) or (table in position and is_altered(lo, limit))
        if due or _holds_any(table, lo, limit, asks):
            reading[table] = limit
        elif table not in position or limit.upto - lo.upto >= IDLE_FOR:
            moving[table] = limit
    told = position_of({**reading, **moving})
    if reading:
        return SourceStatus(True, told)
    return SourceStatus(False, position, {**position, **told} if moving else None)


def _holds_any(table: str, lo: PollPosition, limit: PollPosition, asks: PollQueries) -> bool:
    """What may not be asked is read all the same: the reading says for its table what is wrong, and stops no other."""
    try:
        return limit.upto > lo.upto and asks(table, lo, limit)
    except CheckFailed:
        return True


def split_intervals(lo: Position, limit: Position) -> list[StreamSplit]:
    """One for each table that is to be read: Spark reads them side by side."""
    starts = position_of(poll_positions(lo, sorted(limit))) if limit else {}
    return [
        StreamSplit({table: starts[table]}, {table: limit[table]}, {}, table)
        for table in sorted(limit)
        if starts[table] != limit[table]
    ]


def ends(partition: StreamSplit) -> tuple[str, PollPosition, PollPosition]:
    """The table of a share, where it begins and where it ends."""
    table = partition.table
    return table, poll_position(partition.lo[table]), poll_position(partition.limit[table])


@dataclass(frozen=True)
class Anchor:
    """Where a copy stands, and how far its table could be read when it began."""

    floor: str
    position: Position


def anchor(sealed: Position, table: str, epoch: int, clock: Clock) -> Anchor:
    """Of a copy that begins now; ``sealed`` is the end of the last sealed window."""
    place = poll_positions(sealed, [table])[table]
    floor = floor_key(epoch, max(place.round, microseconds(clock.now)))
    return Anchor(floor, position_of({table: clock.planned(place, table)}))
