"""Copy an object that the Bulk API does not support, over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from airflow_cdc_provider.connectors.sources.salesforce.columns import convert_rows
from airflow_cdc_provider.connectors.sources.salesforce.fetch import query_by_ids
from airflow_cdc_provider.connectors.sources.salesforce.query import select
from airflow_cdc_provider.connectors.sources.salesforce.rest import IDS_PER_RETRIEVE, Rest, Row
from airflow_cdc_provider.connectors.sources.salesforce.types import ID
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

MAX_QUERY_BYTES = 12_000
"""URL and headers together are limited to 16,384 bytes."""


def read_over_rest(
    rest: Rest,
    schema: TableSchema,
    condition: str,
    convert: Callable[[Sequence[Row], TableSchema], pa.Table] = convert_rows,
) -> Iterator[pa.Table]:
    """Tables of up to 2,000 rows. If the object is too wide for one query, its ids are queried and whole records are
    fetched by id: a row from several queries could be inconsistent."""
    soql = select(schema, condition)
    if len(quote_plus(soql)) <= MAX_QUERY_BYTES:
        rows = rest.query(soql)
        while page := list(islice(rows, IDS_PER_RETRIEVE)):
            yield convert(page, schema)
        return
    keys = select(replace(schema, columns=(schema.column(ID),)), condition)
    ids = (str(row[ID]) for row in rest.query(keys))
    while chunk := list(islice(ids, IDS_PER_RETRIEVE)):
        records = rest.retrieve(schema.table, chunk, schema.names)
        missing = [record_id for record_id, row in records.items() if row is None]
        archived = [str(row[ID]) for row in query_by_ids(rest, schema.table, (ID,), missing, condition)]
        whole = [row for row in records.values() if row is not None]
        whole += query_by_ids(rest, schema.table, schema.names, archived, condition)
        yield convert(whole, schema)
