"""A full copy of an object, in splits that any process can read, any number of times.

The copy alone is not exact: rows are read under concurrent writes. Its position is the end of the last sealed window.
Every later change is replayed on top, including changes that the copy already contains.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkNotSupported
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import require_supported_rules
from airflow_cdc_provider.connectors.sources.salesforce.columns import cast_columns, convert_rows
from airflow_cdc_provider.connectors.sources.salesforce.errors import MoreDigitsThanDescribed
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import event_name
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, floor_key
from airflow_cdc_provider.connectors.sources.salesforce.query import existing
from airflow_cdc_provider.connectors.sources.salesforce.rest import Row
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import read_over_rest
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import LogicalType, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def open_copy(
    org: Org, task: TableTask, epoch: int, sealed: Position, identity: TableIdentity | None = None
) -> Iterator[Copy]:
    """``identity``: read before. ``sealed`` is the end of the last sealed window. Raises CheckFailed if the table's
    rule is not supported, SourceUnavailable if the bulk query fails."""
    require_supported_rules([task])
    entity = org.rest.describe(task.table)
    schema = selected_schema(task.rule, entity.schema)
    floor = floor_key(epoch, channel_position(sealed, org.options.channel))
    unlogged = _unlogged_columns(org, entity, schema)
    with open_splits(org, schema, entity) as (read, rows):
        yield Copy(floor, sealed, schema, read, rows, unlogged=unlogged, identity=identity)


@contextmanager
def open_splits(org: Org, schema: TableSchema, described: ObjectSchema) -> Iterator[tuple[SplitRead, int]]:
    """One split per page of the bulk result, and the number of rows. One REST split without count if the Bulk API does
    not support the object. ``described``: the whole object."""
    condition = existing(described.schema)
    try:
        with org.bulk.query(schema, condition) as job:
            yield SplitRead(tuple(json.dumps({"page": page}) for page in job.pages), job.rows), job.rows
    except BulkNotSupported:
        yield SplitRead((json.dumps({"rest": condition}),)), 0


def _unlogged_columns(org: Org, entity: ObjectSchema, schema: TableSchema) -> tuple[str, ...]:
    columns = set(entity.snapshot_only)
    with org.pubsub.connected() as pubsub, suppress(CheckFailed):  # an object may have no single-object channel
        event = pubsub.schema(pubsub.topic(f"/data/{event_name(schema.table)}").schema_id)
        columns |= EventLayout(event, entity, schema).unsent
    return tuple(name for name in schema.names if name in columns)


def read_split(org: Org, split: str, schema: TableSchema) -> Iterator[pa.Table]:
    """Rows in the table's types. Raises SourceUnavailable (SRC056) if a value has more digits, because its field was
    changed since the copy began."""
    described = json.loads(split)
    if "page" in described:
        texts = org.bulk.texts(described["page"], schema)
        yield _as_described(org, schema, partial(cast_columns, texts, schema))
        return

    def convert(rows: Sequence[Row], schema: TableSchema) -> pa.Table:
        return _as_described(org, schema, partial(convert_rows, rows, schema))

    yield from read_over_rest(org.rest, schema, described["rest"], convert)


def _as_described(org: Org, schema: TableSchema, convert: Callable[[Collection[str]], pa.Table]) -> pa.Table:
    """What ``convert`` returns, which takes the columns whose values it must not round. The values of a column are
    rounded if it is described as it was, after they were read."""
    with suppress(MoreDigitsThanDescribed):
        return convert(schema.names)
    described = org.rest.describe(schema.table).schema
    same = {column.name for column in described.columns if (column.name, column.type) in _types(schema)}
    try:
        return convert([name for name in schema.names if name not in same])
    except MoreDigitsThanDescribed as error:
        raise SourceUnavailable(_changed(schema.table, str(error))) from error


def _types(schema: TableSchema) -> list[tuple[str, LogicalType]]:
    return [(column.name, column.type) for column in schema.columns]


def _changed(table: str, error: str) -> Problem:
    return Problem(
        "SRC056",
        f"a field of {table} was changed while it was copied",
        where=table,
        found=error,
        do="wait for the next try, which describes the object again",
        data="nothing of this copy was applied",
    )
