"""Read the records of an interval: over REST page by page, or over the Bulk API if there are many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from airflow_cdc_provider.connectors.sources.polling.pages import DeletesExpired, Page, Query, Row, read_pages
from airflow_cdc_provider.connectors.sources.polling.positions import PageEnd
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkNotSupported
from airflow_cdc_provider.connectors.sources.salesforce_poll import soql
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import PolledObject
from airflow_cdc_provider.connectors.sources.salesforce_poll.rows import bulk_rows, key_of, rest_rows
from airflow_cdc_provider.core.errors import Blocked, Problem, SourceUnavailable

BULK_FROM_ROWS = 50_000
"""A REST page has 2,000 rows and costs one call."""
MAX_BULK_ROWS = 1_000_000
"""A bulk result is not ordered, so a window can end only after all of it."""
MIN_INTERVAL = timedelta(seconds=1)
UNLISTED = "SRC045"
MINUTE = timedelta(minutes=1)


def has_rows(entity: PolledObject, query: Query) -> bool:
    text = soql.any_row(entity.table, entity.timestamp_column, query, entity.timestamp_nullable)
    return next(entity.org.rest.query(text), None) is not None


def read_interval(entity: PolledObject, query: Query, deletes_from: datetime | None) -> Iterator[Page]:
    """Deleted records come first, so that a record that was restored follows its delete. ``deletes_from``: None where
    an interval continues, whose deletes were read at its begin. Raises what ``Http.send``
    raises, SourceUnavailable (SRC056) if a value does not have its column's type, and DeletesExpired."""
    if deletes_from is not None and (ids := deleted_ids(entity, deletes_from, query.upto)):
        yield Page([Row(None, key_of(record_id), "", deleted=True) for record_id in ids], None)
    while (part := _next_bulk_query(entity, query)) is not None:
        try:
            yield from _read_bulk(entity, part)
        except BulkNotSupported:
            break
        query = replace(query, after=PageEnd(part.upto, ""))
    yield from read_pages(partial(rest_rows, entity), query, entity.timestamp_nullable)


def deleted_ids(entity: PolledObject, since: datetime, upto: datetime) -> tuple[str, ...]:
    """Includes records that were purged from the recycle bin. Salesforce rounds the interval to minutes. Raises
    DeletesExpired where the list does not go back so far, or would be too long: it would be so each time."""
    if not entity.described.replicable:
        return ()
    end = upto.replace(second=0, microsecond=0) + MINUTE
    try:
        return entity.org.rest.deleted(entity.table, min(since, end - 2 * MINUTE), end)
    except (Blocked, SourceUnavailable) as error:
        if error.problems[0].code != UNLISTED:
            raise
        raise DeletesExpired from error


def _next_bulk_query(entity: PolledObject, query: Query) -> Query | None:
    """The rest of the interval, or its first part if the rest is too large for a window. None if the rest is so small
    that REST is cheaper."""
    if query.after is not None and query.after.timestamp is None:
        return None
    rows = _count(entity, query)
    if rows <= BULK_FROM_ROWS:
        return None
    while rows > MAX_BULK_ROWS and (middle := _middle(query)) is not None:
        query = replace(query, upto=middle)
        rows = _count(entity, query)
    return query


def _middle(query: Query) -> datetime | None:
    begin = query.after.timestamp if query.after and query.after.timestamp else query.since
    length = (query.upto - begin) / 2
    return begin + length if length > MIN_INTERVAL else None


def _count(entity: PolledObject, query: Query) -> int:
    return entity.org.rest.count(soql.count(entity.table, entity.timestamp_column, query))


def _read_bulk(entity: PolledObject, query: Query) -> Iterator[Page]:
    """A window may end only after the last page, because the pages are not ordered."""
    schema = entity.query_schema
    with entity.org.bulk.query(schema, soql.where(entity.timestamp_column, query)) as job:
        count = 0
        for path in job.pages:
            rows = bulk_rows(entity, path)
            count += len(rows)
            yield Page(rows, None)
        if count != job.rows:
            raise SourceUnavailable(_incomplete(entity.table, count, job.rows))
    yield Page([], PageEnd(query.upto, ""))


def _incomplete(table: str, count: int, expected: int) -> Problem:
    return Problem(
        "SRC047",
        f"the bulk result of {table} is incomplete",
        where=table,
        found=f"{count:,} rows",
        allowed=f"{expected:,} rows, as counted by the server",
        data="nothing of it was used",
        do="wait for the next try",
    )
