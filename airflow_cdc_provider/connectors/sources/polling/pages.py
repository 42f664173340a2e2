"""An interval in pages, each of which begins behind the last row of the one before. Pure.

    timestamp = last AND key > last key  OR  timestamp > last

However many rows bear one timestamp, none is left out, and no page has to grow. Rows without timestamp come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_cdc_provider.connectors.sources.polling.positions import After
from airflow_cdc_provider.core.errors import CheckFailed, Problem


class DeletesForgotten(Exception):
    """The source no longer tells which rows were deleted in the interval. Raised before its first page."""


@dataclass(frozen=True)
class Row:
    """A row as it is now. ``key``: canonical JSON array; ``image``: canonical JSON object of all columns, empty where
    the source shows the row as ``deleted``."""

    stamp: datetime | None
    key: str
    image: str
    deleted: bool = False


@dataclass(frozen=True)
class Query:
    """Up to ``rows`` rows by timestamp and key: from ``since``, or behind ``after`` where that is set, up to ``upto``,
    both inclusive. ``unstamped``: those without timestamp instead, by key, behind ``after``."""

    since: datetime
    upto: datetime
    rows: int
    after: After | None = None
    unstamped: bool = False


@dataclass(frozen=True)
class Page:
    """``after`` is where the next page begins; None where the interval cannot be left there."""

    rows: Sequence[Row]
    after: After | None


def pages(ask: Callable[[Query], Sequence[Row]], first: Query, sweep: bool) -> Iterator[Page]:
    """The rows of the interval, as the source has them when each page is asked for. ``sweep``: those without timestamp,
    too."""
    swept = first.after is not None and first.after.stamp is None
    if not swept:
        yield from _pages(ask, first)
    if sweep:
        yield from _pages(ask, replace(first, after=first.after if swept else None, unstamped=True))


def _pages(ask: Callable[[Query], Sequence[Row]], query: Query) -> Iterator[Page]:
    while rows := ask(query):
        after = After(rows[-1].stamp, rows[-1].key)
        yield Page(rows, after)
        if len(rows) < query.rows:
            return
        if after == query.after:
            raise CheckFailed(_too_fine(after))
        query = replace(query, after=after)


def _too_fine(after: After) -> Problem:
    return Problem(
        "SRC061",
        "pages of rows do not come to an end: the timestamp tells more than microseconds",
        found=f"the same row again behind {after.stamp}",
        allowed="timestamps of microseconds or coarser",
        do="name a coarser column, or one that is computed of it",
    )
