"""The log that a source keeps, and when it drops what was not read. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_cdc_provider.core.times import parse_utc

RATE_OVER = timedelta(hours=12)
"""The rate of a log is that of the last 12 to 24 hours."""


@dataclass(frozen=True)
class RetainedLog:
    """``bytes`` of the source's log from our position to its end, including what the source retains for us; None if
    there is no such position. ``since`` (UTC): the source serves everything from then on; None if unknown.
    ``free_bytes``: what can be written before the source drops a part that we have not read; None without such a limit.
    ``end``: the position of the log's end in bytes. ``keeps``: how long the source keeps an entry; None without such a
    limit."""

    bytes: int | None = None
    since: datetime | None = None
    free_bytes: int | None = None
    end: int | None = None
    keeps: timedelta | None = None


@dataclass(frozen=True)
class EndSample:
    """The position of a log's end ``at`` a time, UTC in ISO 8601 format."""

    at: str
    end: int


@dataclass(frozen=True)
class SourceRetention:
    """As measured ``at``: ``log``, with everything read up to ``read_at``. ``ends``: earlier samples, the oldest first.
    Times are UTC in ISO 8601 format."""

    at: str = ""
    read_at: str = ""
    log: RetainedLog = field(default_factory=RetainedLog)
    ends: tuple[EndSample, ...] = ()

    def measured(self, log: RetainedLog, read_at: str, at: str) -> SourceRetention:
        return SourceRetention(at, max(read_at, self.read_at), log, _with_sample(self.ends, log.end, at))

    @property
    def bytes_per_s(self) -> float | None:
        """How fast the log grows; None before two measurements."""
        if self.log.end is None or not self.ends or self.ends[0].at >= self.at:
            return None
        first = self.ends[0]
        return (self.log.end - first.end) / (parse_utc(self.at) - parse_utc(first.at)).total_seconds()

    @property
    def runs_out_at(self) -> datetime | None:
        """When the source drops what was not read, if nothing is read from now on; None if that is unknown, or never
        happens."""
        times = []
        if self.log.keeps is not None and self.read_at:
            times.append(parse_utc(self.read_at) + self.log.keeps)
        if self.log.free_bytes is not None and (rate := self.bytes_per_s):
            times.append(parse_utc(self.at) + timedelta(seconds=self.log.free_bytes / rate))
        return min(times, default=None)

    @property
    def used(self) -> float | None:
        """The used part of the limit in bytes, 0 to 1; None without such a limit."""
        kept, free = self.log.bytes, self.log.free_bytes
        return kept / (kept + free) if kept is not None and free is not None and kept + free > 0 else None


def _with_sample(ends: tuple[EndSample, ...], end: int | None, at: str) -> tuple[EndSample, ...]:
    """Two samples at least 12 hours apart. A log that ends earlier than before is another one."""
    if end is None or any(end < one.end for one in ends):
        ends = ()
    if end is not None and (not ends or parse_utc(at) - parse_utc(ends[-1].at) >= RATE_OVER):
        ends = (*ends, EndSample(at, end))[-2:]
    return ends


def plain_retention(one: SourceRetention) -> dict[str, Any]:
    """As JSON, for the command line and the API. ``used``: the used part of the limit in bytes, 0 to 1."""
    return {
        "bytes": one.log.bytes,
        "free_bytes": one.log.free_bytes,
        "used": one.used,
        "bytes_per_s": one.bytes_per_s,
        "keeps_s": one.log.keeps.total_seconds() if one.log.keeps is not None else None,
        "since": _text(one.log.since),
        "read_at": one.read_at,
        "measured_at": one.at,
        "runs_out_at": _text(one.runs_out_at),
    }


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None
