"""A copy of a whole object, in shares that any process can read, any number of times.

Not exact by itself: rows are read while others write. It stands at the end of the last sealed window; everything after
that is replayed on top, and what the copy already holds of it is only told again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.salesforce.bulk import BulkRefused
from airflow_cdc_provider.connectors.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.salesforce.org import Org
from airflow_cdc_provider.connectors.salesforce.positions import floor_key, place_of
from airflow_cdc_provider.connectors.salesforce.rest_copy import rows_over_rest
from airflow_cdc_provider.connectors.salesforce.types import described
from airflow_cdc_provider.core.positions import Position
from airflow_cdc_provider.core.selection import selected_schema
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

OVER_REST = json.dumps({"rest": True})


@dataclass(frozen=True)
class PagedCopy:
    """Open while its context is. ``floor`` is the order key of ``position``. ``shares`` are JSON, hold no secret, and
    are read with ``read_share``. ``rows`` is None where nobody has counted them."""

    floor: str
    position: Position
    schema: TableSchema
    shares: tuple[str, ...]
    rows: int | None


@contextmanager
def open_copy(org: Org, task: TableTask, epoch: int, sealed: Position) -> Iterator[PagedCopy]:
    """``sealed`` is the end of the last sealed window. Raises CheckFailed where the rule asks for what cannot be kept,
    SourceUnavailable where the bulk query fails."""
    refuse_rules([task])
    schema = selected_schema(task.rule, described(org.rest.describe(task.table)).schema)
    floor = floor_key(epoch, place_of(sealed, org.options.channel))
    try:
        with org.bulk.query(schema) as job:
            shares = tuple(json.dumps({"page": page}) for page in job.pages)
            yield PagedCopy(floor, sealed, schema, shares, job.rows)
    except BulkRefused:
        yield PagedCopy(floor, sealed, schema, (OVER_REST,), None)


def read_share(org: Org, share: str, schema: TableSchema) -> Iterator[pa.Table]:
    """Rows in the table's types."""
    if share == OVER_REST:
        yield from rows_over_rest(org.rest, schema)
    else:
        yield org.bulk.page(json.loads(share)["page"], schema).rows


def tables_of(org: Org, entities: Sequence[str]) -> list[TableSchema]:
    """The objects described, sorted by name; those that cannot be queried or have no id are left out."""
    found = (described(org.rest.describe(entity)) for entity in sorted(entities))
    return [one.schema for one in found if one.queryable and one.schema.key]
