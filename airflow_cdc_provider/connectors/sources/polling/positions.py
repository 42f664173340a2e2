"""Positions of a polled table, and the order keys of its records.

    order key = epoch 8 · round 16 · rank in the round 16

All digits are hex. A round is one reading of an interval, or of the rest of one. Its number is the source's clock in
microseconds when the round was planned, or the previous number plus one if the clock is not ahead of it: so the rounds
of a stream that was started again follow all earlier ones, and a copy can be ordered among them. Timestamps of rows are
not used for the order: a row that is read later is newer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.core.errors import PositionLost
from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_RANK = "f" * 16


@dataclass(frozen=True)
class PageEnd:
    """The last row of a page. ``timestamp`` is None among the rows without timestamp, which come last; ``key`` is its
    canonical key, empty if the page contains every row up to ``timestamp``."""

    timestamp: datetime | None
    key: str


@dataclass(frozen=True)
class PollPosition:
    """The position after the round ``round``. Rows up to ``upto`` were read; if ``after`` is set, only those up to
    ``after``. ``audited``: time of the last key audit. ``schema``: id of the table's schema when the round was planned,
    empty if it is unknown. ``key``: the key columns of ``after``, empty if they are unknown. ``column``: the timestamp
    column by which rows were read, empty if it is unknown. ``offset``: the UTC offset of its timestamps then, None if
    they have a time zone, or if it is unknown."""

    round: int
    upto: datetime
    audited: datetime
    after: PageEnd | None = None
    schema: str = ""
    key: tuple[str, ...] = ()
    column: str = ""
    offset: timedelta | None = None

    def continues_at(self, key: Sequence[str], schema: str) -> bool:
        """Whether ``after`` is a place among the rows of a table with this key, under the schema with this id."""
        if self.after is None or not self.after.key:
            return True
        same_key = self.key == tuple(key) if self.key else len(json.loads(self.after.key)) == len(key)
        return same_key and self.schema == schema


def to_text(position: PollPosition) -> str:
    fields: dict[str, object] = {
        "round": position.round,
        "upto": format_timestamp(position.upto),
        "audited": format_timestamp(position.audited),
    }
    if after := position.after:
        fields["after"] = [after.timestamp and format_timestamp(after.timestamp), after.key]
    if position.schema:
        fields["schema"] = position.schema
    if position.key:
        fields["key"] = position.key
    if position.column:
        fields["column"] = position.column
    if position.offset is not None:
        fields["offset"] = int(position.offset.total_seconds())
    return json.dumps(fields, ensure_ascii=False)


def parse_position(text: str) -> PollPosition:
    fields = json.loads(text)
    after = None
    if "after" in fields:
        timestamp, key = fields["after"]
        after = PageEnd(timestamp and datetime.fromisoformat(timestamp), key)
    upto, audited = datetime.fromisoformat(fields["upto"]), datetime.fromisoformat(fields["audited"])
    schema, key, column = fields.get("schema", ""), tuple(fields.get("key", ())), fields.get("column", "")
    offset = timedelta(seconds=fields["offset"]) if "offset" in fields else None
    return PollPosition(fields["round"], upto, audited, after, schema, key, column, offset)


def table_positions(position: Position, tables: Sequence[str]) -> dict[str, PollPosition]:
    """The position of each table. A table that was added later starts at the least position of the others: no copy of
    it is older than the window that ended there. Each table has its own timestamp column, and the source one UTC offset
    for those without a time zone. Raises PositionLost (SRC013) if the position is that of another type
    of source.
    """
    known = {table: _parse(table, position[table]) for table in tables if table in position}
    others = list(known.values()) or [_parse(table, text) for table, text in position.items()]
    if not others:
        raise _no_position(", ".join(tables), "no position")
    first = min(others, key=lambda other: other.upto)
    offset = min((other.offset for other in others if other.offset is not None), default=None)
    start = PollPosition(max(other.round for other in others), first.upto, first.audited, offset=offset)
    return {table: known.get(table, start) for table in tables}


def position_of(positions: Mapping[str, PollPosition]) -> dict[str, str]:
    return {table: to_text(position) for table, position in positions.items()}


def order_key(epoch: int, number: int, rank: int) -> str:
    return f"{epoch_prefix(epoch)}{number:016x}{rank:016x}"


def floor_key(epoch: int, number: int) -> str:
    """Order key of a copy that started when ``number`` was the round, or the source's clock. The copy contains
    everything that was read in earlier rounds. Later commits are in the interval that follows."""
    return f"{epoch_prefix(epoch)}{number:016x}{LAST_RANK}"


def microseconds(timestamp: datetime) -> int:
    since = timestamp - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def round_time(number: int) -> datetime:
    """When a round was planned, by the source's clock."""
    return EPOCH + timedelta(microseconds=number)


def format_timestamp(timestamp: datetime) -> str:
    return f"{timestamp.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def _parse(table: str, text: str) -> PollPosition:
    try:
        return parse_position(text)
    except (ValueError, KeyError, TypeError) as error:
        raise _no_position(table, text[:80]) from error


def _no_position(table: str, found: str) -> PositionLost:
    return PositionLost.of(
        "SRC013",
        "the position does not belong to a source that polls by timestamp",
        where=table,
        found=found,
        allowed="a position for each table",
        data="the target tables contain the changes up to their cursors; later changes are not in the log",
        do="restore the old type of source, or copy the tables again: airflow cdc resync",
    )
