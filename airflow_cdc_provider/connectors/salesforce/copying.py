"""A copy of a whole object, in shares that any process can read, any number of times.

Not exact by itself: rows are read while others write. It stands at the end of the last sealed window; everything after
that is replayed on top, and what the copy already holds of it is only told again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.salesforce.bulk import BulkRefused
from airflow_cdc_provider.connectors.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.salesforce.event_schema import change_event
from airflow_cdc_provider.connectors.salesforce.layout import Layout
from airflow_cdc_provider.connectors.salesforce.org import Org
from airflow_cdc_provider.connectors.salesforce.positions import floor_key, place_of
from airflow_cdc_provider.connectors.salesforce.rest_copy import rows_over_rest
from airflow_cdc_provider.connectors.salesforce.types import Described, described
from airflow_cdc_provider.connectors.source import Copy, PagedRead
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.positions import Position
from airflow_cdc_provider.core.selection import selected_schema
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema

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
    floor = floor_key(epoch, place_of(sealed, org.options.channel))
    untold = _untold(org, told, schema)
    with opened_pages(org, schema) as (read, rows):
        yield Copy(floor, sealed, schema, read, rows, untold=untold)


@contextmanager
def opened_pages(org: Org, schema: TableSchema) -> Iterator[tuple[PagedRead, int]]:
    """As many shares as Salesforce makes pages, and the number of rows; one over REST, uncounted, where Bulk refuses
    the object."""
    try:
        with org.bulk.query(schema) as job:
            yield PagedRead(tuple(json.dumps({"page": page}) for page in job.pages), job.rows), job.rows
    except BulkRefused:
        yield PagedRead((OVER_REST,)), 0


def _untold(org: Org, told: Described, schema: TableSchema) -> tuple[str, ...]:
    """Columns that are as of the last copy or fetch, whatever happens to them."""
    columns = set(told.snapshot_only)
    with org.pubsub.connected() as pubsub, suppress(CheckFailed):  # an object may have no channel of its own
        event = pubsub.schema(pubsub.topic(f"/data/{change_event(schema.table)}").schema_id)
        columns |= Layout(event, told, schema).unsent
    return tuple(name for name in schema.names if name in columns)


def read_share(org: Org, share: str, schema: TableSchema) -> Iterator[pa.Table]:
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
