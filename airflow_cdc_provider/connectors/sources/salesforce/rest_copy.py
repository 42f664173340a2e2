"""Rows of an object that the Bulk API does not serve, over REST."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from airflow_cdc_provider.connectors.sources.salesforce.columns import typed_rows
from airflow_cdc_provider.connectors.sources.salesforce.query import name, select
from airflow_cdc_provider.connectors.sources.salesforce.rest import IDS_PER_RETRIEVE, Rest
from airflow_cdc_provider.connectors.sources.salesforce.types import ID
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_QUERY_BYTES = 12_000
"""Address and headers together may have 16,384 bytes."""


def rows_over_rest(rest: Rest, schema: TableSchema) -> Iterator[pa.Table]:
    """Tables of up to 2,000 rows. Where the object is too wide for one query, its ids are queried and whole records
    fetched by them: a row put together from several queries could be torn by a change between them."""
    soql = select(schema)
    if len(quote_plus(soql)) <= LONGEST_QUERY_BYTES:
        rows = rest.query(soql)
        while page := list(islice(rows, IDS_PER_RETRIEVE)):
            yield typed_rows(page, schema)
        return
    ids = (str(row[ID]) for row in rest.query(f"SELECT {ID} FROM {name(schema.table)}"))
    while some := list(islice(ids, IDS_PER_RETRIEVE)):
        found = rest.retrieve(schema.table, some, schema.names)
        yield typed_rows([row for row in found.values() if row is not None], schema)
