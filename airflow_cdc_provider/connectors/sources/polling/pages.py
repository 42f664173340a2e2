"""Read an interval page by page (keyset pagination). Pure.

    timestamp = last AND key > last key  OR  timestamp > last

So any number of rows may have the same timestamp. Rows without timestamp come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_cdc_provider.connectors.sources.polling.positions import PageEnd
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord


class DeletesExpired(Exception):
    """The source no longer lists the rows that were deleted in the interval. Raised before its first page."""


@dataclass(frozen=True)
class Row:
    """A row as it is now. ``key``: canonical JSON array; ``image``: canonical JSON object of all columns, empty if the
    source marks the row as ``deleted``. ``undecoded``: instead of the image, of a row with values that no target's type
    has."""

    timestamp: datetime | None
    key: str
    image: str
    deleted: bool = False
    undecoded: UndecodedRecord | None = None


@dataclass(frozen=True)
class Query:
    """Up to ``rows`` rows ordered by timestamp and key: from ``since``, or after ``after`` if set, up to ``upto``, both
    inclusive. ``null_timestamps``: rows without timestamp instead, ordered by key."""

    since: datetime
    upto: datetime
    rows: int
    after: PageEnd | None = None
    null_timestamps: bool = False


@dataclass(frozen=True)
class Page:
    """``after`` is the start of the next page; None if a window cannot end after this page."""

    rows: Sequence[Row]
    after: PageEnd | None


def read_pages(run: Callable[[Query], Sequence[Row]], first: Query, include_null_timestamps: bool) -> Iterator[Page]:
    """The rows of the interval, as of the query of each page. ``include_null_timestamps``: then the rows without
    timestamp."""
    in_null_timestamps = first.after is not None and first.after.timestamp is None
    if not in_null_timestamps:
        yield from _read_pages(run, first)
    if include_null_timestamps:
        after = first.after if in_null_timestamps else None
        yield from _read_pages(run, replace(first, after=after, null_timestamps=True))


def _read_pages(run: Callable[[Query], Sequence[Row]], query: Query) -> Iterator[Page]:
    while rows := run(query):
        after = PageEnd(rows[-1].timestamp, rows[-1].key)
        yield Page(rows, after)
        if len(rows) < query.rows:
            return
        if after == query.after:
            raise CheckFailed(_too_precise(after))
        query = replace(query, after=after)


def _too_precise(after: PageEnd) -> Problem:
    return Problem(
        "SRC061",
        "the pages of the interval do not end: the timestamp column is more precise than microseconds",
        found=f"the same row again after {after.timestamp}",
        allowed="timestamps with a precision of microseconds or less",
        do="use a less precise column, or one that is computed from it",
    )
