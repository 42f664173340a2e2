"""The queries over one object. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import quote_plus

from airflow_cdc_provider.connectors.sources.polling.pages import Query
from airflow_cdc_provider.connectors.sources.salesforce.query import name
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import LONGEST_QUERY_BYTES
from airflow_cdc_provider.connectors.sources.salesforce.types import ID


def page(table: str, columns: tuple[str, ...], stamp: str, query: Query) -> str:
    order = ID if query.unstamped else f"{stamp}, {ID}"
    return f"{_select(table, columns)} WHERE {where(stamp, query)} ORDER BY {order} LIMIT {query.rows}"


def count(table: str, stamp: str, query: Query) -> str:
    return f"SELECT COUNT() FROM {name(table)} WHERE {where(stamp, query)}"


def any_row(table: str, stamp: str, query: Query, sweep: bool) -> str:
    unstamped = f" OR {name(stamp)} = null" if sweep else ""
    return f"SELECT {ID} FROM {name(table)} WHERE ({where(stamp, query)}){unstamped} LIMIT 1"


def where(stamp: str, query: Query) -> str:
    """Rows of an interval, and of those the ones behind the last page."""
    column, after = name(stamp), query.after
    if query.unstamped:
        return f"{column} = null" + (f" AND {ID} > '{_id(after.key)}'" if after else "")
    upto = f"{column} <= {moment(query.upto)}"
    if after is None or after.stamp is None:
        return f"{column} >= {moment(query.since)} AND {upto}"
    last = moment(after.stamp)
    if not after.key:
        return f"{column} > {last} AND {upto}"
    return f"(({column} = {last} AND {ID} > '{_id(after.key)}') OR {column} > {last}) AND {upto}"


def fits(soql: str) -> bool:
    """Whether the query is short enough for an address."""
    return len(quote_plus(soql)) <= LONGEST_QUERY_BYTES


def moment(at: datetime) -> str:
    """Milliseconds, cut off: an interval begins a little earlier, and ends a little earlier."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _select(table: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(map(name, columns))} FROM {name(table)}"


def _id(key: str) -> str:
    (one,) = json.loads(key)
    if not str(one).isalnum():
        raise ValueError("a key that is no id")
    return str(one)
