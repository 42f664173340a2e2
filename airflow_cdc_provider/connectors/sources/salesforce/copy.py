"""A copy of a whole object, in shares that any process can read, any number of times.

Not exact by itself: rows are read while others write. It stands at the end of the last sealed window; everything after
that is replayed on top, and what the copy already holds of it is only told again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkRefused
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import change_event
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, floor_key
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import rows_over_rest
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, described
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.selection import selected_schema
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

OVER_REST = json.dumps({"rest": True})


@contextmanager
def open_copy(org: Org, task: TableTask, epoch: int, sealed: Position) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window. Raises CheckFailed where the rule asks for what cannot be kept,
    SourceUnavailable where the bulk query fails."""
    refuse_rules([task])
    told = described(org.rest.describe(task.table))
    schema = selected_schema(task.rule, told.schema)
    floor = floor_key(epoch, channel_position(sealed, org.options.channel))
    untold = _untold(org, told, schema)
    with opened_pages(org, schema) as (read, rows):
        yield Copy(floor, sealed, schema, read, rows, unlogged=untold)


@contextmanager
def opened_pages(org: Org, schema: TableSchema) -> Iterator[tuple[SplitRead, int]]:
    """As many shares as Salesforce makes pages, and the number of rows; one over REST, uncounted, where Bulk refuses
    the object."""
    try:
        with org.bulk.query(schema) as job:
            yield SplitRead(tuple(json.dumps({"page": page}) for page in job.pages), job.rows), job.rows
    except BulkRefused:
        yield SplitRead((OVER_REST,)), 0


def _untold(org: Org, told: ObjectSchema, schema: TableSchema) -> tuple[str, ...]:
    """Columns that are as of the last copy or fetch, whatever happens to them."""
    columns = set(told.snapshot_only)
    with org.pubsub.connected() as pubsub, suppress(CheckFailed):  # an object may have no channel of its own
        event = pubsub.schema(pubsub.topic(f"/data/{change_event(schema.table)}").schema_id)
        columns |= EventLayout(event, told, schema).unsent
    return tuple(name for name in schema.names if name in columns)


def read_split(org: Org, share: str, schema: TableSchema) -> Iterator[pa.Table]:
    """Rows in the table's types."""
    if share == OVER_REST:
        yield from rows_over_rest(org.rest, schema)
    else:
        yield org.bulk.page(json.loads(share)["page"], schema)


def tables_of(org: Org, entities: Sequence[str]) -> list[TableSchema]:
    """The objects described, sorted by name; those that this user does not see, that cannot be queried, or
    that have no id are left out."""
    found = map(described, org.rest.describe_all(sorted(entities)))
    return [one.schema for one in found if one.queryable and one.schema.key]
