"""The SOQL queries over one object. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import quote_plus

from airflow_cdc_provider.connectors.sources.polling.pages import Query
from airflow_cdc_provider.connectors.sources.salesforce.query import checked_name
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import MAX_QUERY_BYTES
from airflow_cdc_provider.connectors.sources.salesforce.types import ID


def page(table: str, columns: tuple[str, ...], timestamp_column: str, query: Query) -> str:
    order = ID if query.null_timestamps else f"{timestamp_column}, {ID}"
    return f"{_select(table, columns)} WHERE {where(timestamp_column, query)} ORDER BY {order} LIMIT {query.rows}"


def count(table: str, timestamp_column: str, query: Query) -> str:
    return f"SELECT COUNT() FROM {checked_name(table)} WHERE {where(timestamp_column, query)}"


def any_row(table: str, timestamp_column: str, query: Query, include_null_timestamps: bool) -> str:
    is_null = f" OR {checked_name(timestamp_column)} = null" if include_null_timestamps else ""
    return f"SELECT {ID} FROM {checked_name(table)} WHERE ({where(timestamp_column, query)}){is_null} LIMIT 1"


def where(timestamp_column: str, query: Query) -> str:
    """The rows of an interval after the last page."""
    column, after = checked_name(timestamp_column), query.after
    if query.null_timestamps:
        return f"{column} = null" + (f" AND {ID} > '{_id(after.key)}'" if after else "")
    upto = f"{column} <= {timestamp_literal(query.upto)}"
    if after is None or after.timestamp is None:
        return f"{column} >= {timestamp_literal(query.since)} AND {upto}"
    last = timestamp_literal(after.timestamp)
    if not after.key:
        return f"{column} > {last} AND {upto}"
    return f"(({column} = {last} AND {ID} > '{_id(after.key)}') OR {column} > {last}) AND {upto}"


def fits(soql: str) -> bool:
    """Whether the query is short enough for a URL."""
    return len(quote_plus(soql)) <= MAX_QUERY_BYTES


def timestamp_literal(timestamp: datetime) -> str:
    """Truncated to milliseconds: an interval starts and ends up to a millisecond earlier."""
    return f"{timestamp.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _select(table: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(map(checked_name, columns))} FROM {checked_name(table)}"


def _id(key: str) -> str:
    (record_id,) = json.loads(key)
    if not str(record_id).isalnum():
        raise ValueError("the key is no record id")
    return str(record_id)
