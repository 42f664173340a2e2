"""A full copy of an object, in splits that any process can read, any number of times.

The copy alone is not exact: rows are read under concurrent writes. Its position is the end of the last sealed window.
Every later change is replayed on top, including changes that the copy already contains.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkNotSupported
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import require_supported_rules
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import event_name
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, floor_key
from airflow_cdc_provider.connectors.sources.salesforce.query import existing
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import read_over_rest
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import TableSchema

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
    """Rows in the table's types."""
    described = json.loads(split)
    if "page" in described:
        yield org.bulk.page(described["page"], schema)
    else:
        yield from read_over_rest(org.rest, schema, described["rest"])
