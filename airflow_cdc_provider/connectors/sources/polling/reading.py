"""Read one interval of a table as stream items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from airflow_cdc_provider.connectors.changed_columns import schema_record
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.intervals import (
    is_audit,
    is_column_changed,
    is_schema_changed,
    split_bounds,
)
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.pages import DeletesExpired, Page, Query, Row
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PageEnd,
    PollPosition,
    format_timestamp,
    order_key,
    position_of,
    round_time,
)
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_log import AUDIT, RELOAD
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

LEAST_OFFSET = timedelta(hours=-12)

NO_TIMESTAMP_COLUMN = "the table has no column with the time of the last change"
OTHER_COLUMN = "the timestamp column is {} now, and was {}: it may show changes that were never read"
DELETES_EXPIRED = "the source no longer lists the deleted rows; a key audit finds them"
AUDIT_DUE = "a key audit is due, which finds deleted rows"


def first_query(lo: PollPosition, limit: PollPosition, options: PollingOptions, key: Sequence[str]) -> Query:
    """An interval that continues does not read the overlap again. If the ``key`` of the table or its schema has changed
    since, the last key is no place among the rows now: all rows with the last timestamp are read again, or all rows
    without one. If their offset from UTC has changed, it continues from the least moment that either offset allows."""
    gap, after = _unread(lo, limit), lo.after
    if after and after.timestamp:
        after = replace(after, timestamp=after.timestamp - gap)
    query = Query(lo.upto - gap - options.timestamp_latency, limit.upto, options.page_rows, after)
    if after is None or lo.continues_at(key, limit.schema):
        return query
    if after.timestamp is None:
        return replace(query, after=PageEnd(limit.upto, ""))
    return replace(query, since=after.timestamp, after=None)


def _unread(lo: PollPosition, limit: PollPosition) -> timedelta:
    """The wall time between the end of the last interval, in its offset from UTC, and the same moment in that of the
    next one, if it is greater: the timestamps of rows are those of a wall clock. An offset that is not known may have
    been any."""
    if limit.offset is None:
        return timedelta(0)
    before = LEAST_OFFSET if lo.offset is None else lo.offset
    return max(limit.offset - before, timedelta(0))


def read_items(
    split: StreamSplit,
    task: TableTask,
    epoch: int,
    read: Callable[[PollPosition, PollPosition], Iterator[Page]],
) -> Iterator[StreamItem]:
    """Complete rows, and deletes. A window may end after every page, and ends at its limit after the last one. ``read``
    returns the pages between two positions. The position after a page contains a key: a window of a table with hashed
    keys only ends at its limit."""
    schema, has_hashed_key = task.schema, not set(task.rule.columns.hash).isdisjoint(task.schema.key)
    table, lo, limit = split_bounds(split)
    rank = 0
    if is_schema_changed(lo, limit):
        yield from (schema, schema_record(schema, order_key(epoch, limit.round, rank), "{}"))
        rank += 1
    if is_column_changed(lo, limit):
        yield from reload_items(split, epoch, rank, OTHER_COLUMN.format(limit.column, lo.column))
        return
    if is_audit(lo, limit):
        yield from _audit_items(table, epoch, limit, rank, AUDIT_DUE)
        return
    try:
        for page in read(lo, limit):
            if not rank and page.rows:
                yield schema
            for row in page.rows:
                yield _record(row, table, schema, order_key(epoch, limit.round, rank))
                rank += 1
            if page.after and not has_hashed_key:
                yield Boundary(position_of({table: replace(limit, after=page.after, key=schema.key)}))
    except DeletesExpired:
        position = replace(limit, upto=lo.upto, audited=round_time(limit.round), offset=lo.offset)
        yield from _audit_items(table, epoch, position, rank, DELETES_EXPIRED)
        return
    yield Boundary(split.limit)


def _audit_items(table: str, epoch: int, position: PollPosition, rank: int, reason: str) -> Iterator[StreamItem]:
    yield HoleFound(table, AUDIT, order_key(epoch, position.round, rank), reason)
    yield Boundary(position_of({table: position}))


def reload_items(
    split: StreamSplit, epoch: int, rank: int = 0, reason: str = NO_TIMESTAMP_COLUMN
) -> Iterator[StreamItem]:
    """For a table whose changes no timestamp shows, which can only be copied again."""
    table, _, limit = split_bounds(split)
    yield HoleFound(table, RELOAD, order_key(epoch, limit.round, rank), reason)
    yield Boundary(split.limit)


def _record(row: Row, table: str, schema: TableSchema, order: str) -> ChangeRecord:
    position = f'{{"timestamp":"{format_timestamp(row.timestamp)}"}}' if row.timestamp else "{}"
    if row.undecoded is not None:
        after = canonical(to_plain(replace(row.undecoded, version=position)))
        return ChangeRecord(
            table,
            Operation.UNREADABLE,
            order,
            schema.schema_id,
            key=row.key,
            after=after,
            commit_ts=row.timestamp,
            position=position,
            event_id=order,
        )
    return ChangeRecord(
        table,
        Operation.DELETE if row.deleted else Operation.UPSERT,
        order,
        schema.schema_id,
        key_before=row.key,
        key=None if row.deleted else row.key,
        after=None if row.deleted else row.image,
        after_complete=not row.deleted,
        commit_ts=row.timestamp,
        position=position,
        event_id=order,
    )
