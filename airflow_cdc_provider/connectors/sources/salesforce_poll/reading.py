"""The records of an interval: over REST page by page, or over the Bulk API where there are many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from airflow_cdc_provider.connectors.sources.polling.pages import DeletesForgotten, Page, Query, Row, pages
from airflow_cdc_provider.connectors.sources.polling.positions import After
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkRefused
from airflow_cdc_provider.connectors.sources.salesforce_poll import soql
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import Object
from airflow_cdc_provider.connectors.sources.salesforce_poll.rows import key_of, rows_of_bulk, rows_of_rest
from airflow_cdc_provider.core.errors import Blocked, Problem, SourceUnavailable

BULK_FROM_ROWS = 50_000
"""A page of REST has 2,000 rows and costs one call."""
MOST_BULK_ROWS = 1_000_000
"""A result has no order: a window can end only behind all of it."""
SHORTEST = timedelta(seconds=1)
PURGED = "SRC045"
MINUTE = timedelta(minutes=1)


def holds_any(one: Object, query: Query) -> bool:
    text = soql.any_row(one.table, one.stamp, query, one.sweeps)
    return next(one.org.rest.query(text, deleted=True), None) is not None


def interval(one: Object, query: Query, deletes_from: datetime) -> Iterator[Page]:
    """Deleted records first: one that is there again comes behind. Raises what ``Http.send`` raises, SourceUnavailable
    (SRC056) for a value that is none of its column's type, and DeletesForgotten."""
    if query.after is None and (gone := deleted(one, deletes_from, query.upto)):
        yield Page([Row(None, key_of(record), "", deleted=True) for record in gone], None)
    while (piece := _piece(one, query)) is not None:
        try:
            yield from _bulk(one, piece)
        except BulkRefused:
            break
        query = replace(query, after=After(piece.upto, ""))
    yield from pages(partial(rows_of_rest, one), query, one.sweeps)


def deleted(one: Object, since: datetime, upto: datetime) -> tuple[str, ...]:
    """Ids of the records that were deleted, those that left the recycle bin too. Salesforce counts whole minutes."""
    if not one.described.replicable:
        return ()
    end = upto.replace(second=0, microsecond=0) + MINUTE
    try:
        return one.org.rest.deleted(one.table, min(since, end - 2 * MINUTE), end)
    except Blocked as error:
        if error.problems[0].code != PURGED:
            raise
        raise DeletesForgotten from error


def _piece(one: Object, query: Query) -> Query | None:
    """What the Bulk API reads next: all that is left, or less where that would be too large for a window. None where so
    little is left that REST is cheaper."""
    if query.after is not None and query.after.stamp is None:
        return None
    rows = _count(one, query)
    if rows <= BULK_FROM_ROWS:
        return None
    while rows > MOST_BULK_ROWS and (half := _half(query)) is not None:
        query = replace(query, upto=half)
        rows = _count(one, query)
    return query


def _half(query: Query) -> datetime | None:
    begin = query.after.stamp if query.after and query.after.stamp else query.since
    length = (query.upto - begin) / 2
    return begin + length if length > SHORTEST else None


def _count(one: Object, query: Query) -> int:
    return one.org.rest.count(soql.count(one.table, one.stamp, query), deleted=True)


def _bulk(one: Object, query: Query) -> Iterator[Page]:
    """A window may end behind the last page only: none of them says what the others hold."""
    wide = one.wide
    with one.org.bulk.query(wide, soql.where(one.stamp, query), deleted=True) as job:
        found = 0
        for path in job.pages:
            rows = rows_of_bulk(one, one.org.bulk.page(path, wide))
            found += len(rows)
            yield Page(rows, None)
        if found != job.rows:
            raise SourceUnavailable(_not_whole(one.table, found, job.rows))
    yield Page([], After(query.upto, ""))


def _not_whole(table: str, found: int, counted: int) -> Problem:
    return Problem(
        "SRC047",
        f"the bulk result of {table} did not come whole",
        where=table,
        found=f"{found:,} rows",
        allowed=f"{counted:,} rows, as the server counted them",
        data="nothing of it was used",
        do="the next try asks again",
    )
