"""Plan the next interval of a table. Pure.

Interval: ``upto of the last one - timestamp_latency <= timestamp <= source's clock - commit_latency``. So a change is
read if it is committed at most both latencies after its timestamp: in the next interval that is planned after its
commit, or in a later one if its timestamp is younger. An interval that was not read completely continues after its last
page with the same end, so that a bulk change that is larger than a window is read in several windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from airflow_cdc_provider.connectors.source import SourceStatus, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PollPosition,
    floor_key,
    microseconds,
    parse_position,
    position_of,
    table_positions,
)
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable, SourceUnreachable
from airflow_cdc_provider.core.log.positions import Position

ADVANCE_AFTER = timedelta(hours=1)
"""Length of an interval without changes from which on its table is advanced. Shorter ones leave the position as it
is."""


def deletes_since(lo: PollPosition, options: PollingOptions) -> datetime:
    """Start of the interval of deletes. Deletes before the last audit are known."""
    overlap = options.commit_latency + options.timestamp_latency
    return max(lo.upto - options.timestamp_latency, lo.audited - overlap)


class HasChanges(Protocol):
    def __call__(self, table: str, lo: PollPosition, limit: PollPosition) -> bool:
        """Whether the interval contains changes."""


@dataclass(frozen=True)
class IntervalPlanner:
    """``now``: the source's clock. ``reload_tables``: tables without timestamp column, which are copied again in every
    run. ``deletes_retained_for``: how long the source lists deleted rows, None if it does not. ``schema_ids``: table ->
    id of its current schema, if the source shows it. ``timestamp_columns``: table -> its column now. ``offsets``: table
    -> UTC offset of its timestamps now, None if they have a time zone."""

    now: datetime
    options: PollingOptions
    reload_tables: frozenset[str] = frozenset()
    deletes_retained_for: timedelta | None = None
    schema_ids: Mapping[str, str] = field(default_factory=dict)
    timestamp_columns: Mapping[str, str] = field(default_factory=dict)
    offsets: Mapping[str, timedelta | None] = field(default_factory=dict)

    def start(self, table: str) -> PollPosition:
        """The position of a table that is first copied now."""
        upto = self.now - self.options.commit_latency
        offset = self.offsets.get(table)
        return self._described(PollPosition(microseconds(self.now), upto, self.now, offset=offset), table)

    def limit(self, lo: PollPosition, table: str) -> PollPosition:
        """The end of the next interval. A position never goes back, even if the source's clock does. An audit reads no
        rows in another offset."""
        number, upto, audited = max(lo.round + 1, microseconds(self.now)), lo.upto, lo.audited
        offset = self.offsets.get(table, lo.offset)
        if self.is_audit_due(lo):
            audited, offset = self.now, lo.offset
        elif not lo.after:
            upto = max(upto, self.now - self.options.commit_latency)
        limit = PollPosition(number, upto, audited, schema=lo.schema, column=lo.column, offset=offset)
        return self._described(limit, table)

    def _described(self, position: PollPosition, table: str) -> PollPosition:
        """With the schema and the timestamp column of the table as they are now, if they are known."""
        schema = self.schema_ids.get(table, position.schema)
        return replace(position, schema=schema, column=self.timestamp_columns.get(table, position.column))

    def is_audit_due(self, lo: PollPosition) -> bool:
        every, unread = self.options.key_audit, self.now - max(lo.upto, lo.audited)
        due = every is not None and self.now - lo.audited >= every
        expired = self.deletes_retained_for is not None and unread >= self.deletes_retained_for
        return lo.after is None and (due or expired)


def is_audit(lo: PollPosition, limit: PollPosition) -> bool:
    """Whether the interval is a key audit, which reads no rows. An audit that was requested after ``limit`` was planned
    is none of this interval."""
    return limit.audited > lo.audited


def is_schema_changed(lo: PollPosition, limit: PollPosition) -> bool:
    """New columns are announced at once, even if no row changes."""
    return lo.schema != limit.schema


def is_column_changed(lo: PollPosition, limit: PollPosition) -> bool:
    """Whether another timestamp column is polled than before. What the former one had shown says nothing about its
    rows: only a copy has those that neither of both would show."""
    return bool(lo.column and limit.column) and lo.column != limit.column


def poll_status(
    position: Position, tables: Sequence[str], planner: IntervalPlanner, has_changes: HasChanges
) -> SourceStatus:
    """Each table is polled separately. ``limit`` contains only the tables that are to be read."""
    to_read: dict[str, PollPosition] = {}
    to_advance: dict[str, PollPosition] = {}
    for table, lo in table_positions(position, tables).items():
        limit = planner.limit(lo, table)
        due = table in planner.reload_tables or lo.after or is_audit(lo, limit)
        due = due or is_column_changed(lo, limit) or (table in position and is_schema_changed(lo, limit))
        if due or _has_changes(table, lo, limit, has_changes):
            to_read[table] = limit
        elif table not in position or limit.upto - lo.upto >= ADVANCE_AFTER:
            to_advance[table] = limit
    limits = position_of({**to_read, **to_advance})
    if to_read:
        return SourceStatus(True, limits, at=planner.now)
    return SourceStatus(False, position, {**position, **limits} if to_advance else None, at=planner.now)


def _has_changes(table: str, lo: PollPosition, limit: PollPosition, has_changes: HasChanges) -> bool:
    """A table whose poll fails is read, because the reader reports the problem for this table alone."""
    try:
        return limit.upto > lo.upto and has_changes(table, lo, limit)
    except SourceUnreachable:
        raise
    except (CheckFailed, SourceUnavailable):
        return True


def split_intervals(lo: Position, limit: Position) -> list[StreamSplit]:
    """One split per table that is to be read."""
    starts = position_of(table_positions(lo, sorted(limit))) if limit else {}
    return [
        StreamSplit({table: starts[table]}, {table: limit[table]}, {}, table)
        for table in sorted(limit)
        if starts[table] != limit[table]
    ]


def split_bounds(split: StreamSplit) -> tuple[str, PollPosition, PollPosition]:
    """Table, start and end of a split."""
    table = split.table
    return table, parse_position(split.lo[table]), parse_position(split.limit[table])


@dataclass(frozen=True)
class Anchor:
    """Floor of a copy, and the position up to which its table could be read when the copy started."""

    floor: str
    position: Position


def copy_anchor(sealed: Position, table: str, epoch: int, planner: IntervalPlanner) -> Anchor:
    """The anchor of a copy that starts now; ``sealed`` is the end of the last sealed window."""
    lo = table_positions(sealed, [table])[table]
    floor = floor_key(epoch, max(lo.round, microseconds(planner.now)))
    return Anchor(floor, position_of({table: planner.limit(lo, table)}))
