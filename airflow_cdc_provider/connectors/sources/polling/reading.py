"""One reading of a table, as the items of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from airflow_cdc_provider.connectors.new_columns import schema_record
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.intervals import ends, is_altered, is_audit
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.pages import DeletesForgotten, Page, Query, Row
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PollPosition,
    moment_of,
    order_key,
    position_of,
    written,
)
from airflow_cdc_provider.core.log.change_log import AUDIT, RELOAD
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import TableSchema

NO_COLUMN = "no column tells when its rows are changed"
FORGOTTEN = "the source no longer tells which rows were deleted; they are looked for by their keys"
AUDIT_DUE = "rows that were deleted at the source are looked for by their keys"


def first_query(lo: PollPosition, limit: PollPosition, options: PollingOptions) -> Query:
    """An interval that goes on does not begin again with the overlap."""
    return Query(lo.upto - options.timestamp_latency, limit.upto, options.page_rows, lo.after)


def items(
    partition: StreamSplit,
    schema: TableSchema,
    epoch: int,
    read: Callable[[PollPosition, PollPosition], Iterator[Page]],
) -> Iterator[StreamItem]:
    """Every row as a whole, or as deleted. A window may end behind every page; behind the last one it ends where it was
    planned to. ``read`` gives the pages between two places; a table that is copied as a whole has none."""
    table, lo, limit = ends(partition)
    rank = 0
    if is_altered(lo, limit):
        yield from (schema, schema_record(schema, order_key(epoch, limit.round, rank), "{}"))
        rank += 1
    if is_audit(lo, limit):
        yield from _audit(table, epoch, limit, rank, AUDIT_DUE)
        return
    try:
        for page in read(lo, limit):
            if not rank and page.rows:
                yield schema
            for row in page.rows:
                yield _record(row, table, schema, order_key(epoch, limit.round, rank))
                rank += 1
            if page.after:
                yield Boundary(position_of({table: replace(limit, after=page.after)}))
    except DeletesForgotten:
        place = PollPosition(limit.round, lo.upto, moment_of(limit.round), schema=limit.schema)
        yield from _audit(table, epoch, place, rank, FORGOTTEN)
        return
    yield Boundary(partition.limit)


def _audit(table: str, epoch: int, place: PollPosition, rank: int, why: str) -> Iterator[StreamItem]:
    yield HoleFound(table, AUDIT, order_key(epoch, place.round, rank), why)
    yield Boundary(position_of({table: place}))


def whole(partition: StreamSplit, epoch: int) -> Iterator[StreamItem]:
    """A table that can only be copied anew."""
    table, _, limit = ends(partition)
    yield HoleFound(table, RELOAD, order_key(epoch, limit.round, 0), NO_COLUMN)
    yield Boundary(partition.limit)


def _record(row: Row, table: str, schema: TableSchema, order: str) -> ChangeRecord:
    return ChangeRecord(
        table,
        Operation.DELETE if row.deleted else Operation.UPSERT,
        order,
        schema.schema_id,
        key_before=row.key,
        key=None if row.deleted else row.key,
        after=None if row.deleted else row.image,
        after_complete=not row.deleted,
        commit_ts=row.stamp,
        position=f'{{"timestamp":"{written(row.stamp)}"}}' if row.stamp else "{}",
        event_id=order,
    )
