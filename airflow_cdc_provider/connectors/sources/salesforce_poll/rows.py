"""Query records, and convert them to the rows of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.sources.polling.pages import Query, Row
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.fetch import fetch, row_image
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED
from airflow_cdc_provider.connectors.sources.salesforce_poll import soql
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import PolledObject
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable


def key_of(record_id: str) -> str:
    return json.dumps([full_id(record_id)])


def rest_rows(entity: PolledObject, query: Query) -> list[Row]:
    """A page. If the object is too wide for one query, whole records are fetched by id: a row from several queries
    could be inconsistent."""
    text = soql.page(entity.table, entity.query_schema.names, entity.timestamp_column, query)
    try:
        if soql.fits(text):
            return [_row(entity, values) for values in entity.org.rest.query(text)]
        return _fetch_rows(entity, query)
    except DecodeError as error:
        raise SourceUnavailable(_unreadable(entity.table, str(error))) from error


def bulk_rows(entity: PolledObject, path: str) -> list[Row]:
    """Those of a result page. Raises SourceUnavailable (SRC056) if a value does not have its column's type."""
    try:
        rows = entity.org.bulk.page(path, entity.query_schema)
    except DecodeError as error:
        raise SourceUnavailable(_unreadable(entity.table, str(error))) from error
    return [_bulk_row(entity, values) for values in rows.to_pylist()]


def _row(entity: PolledObject, values: Mapping[str, Any]) -> Row:
    key, timestamp = key_of(values[ID]), _parse_timestamp(values[entity.timestamp_column])
    if values.get(IS_DELETED):
        return Row(timestamp, key, "", deleted=True)
    return Row(timestamp, key, row_image(values, entity.schema))


def _bulk_row(entity: PolledObject, values: Mapping[str, Any]) -> Row:
    """The values of a bulk result have their column's types."""
    key, timestamp = key_of(values[ID]), values[entity.timestamp_column]
    if values.get(IS_DELETED):
        return Row(timestamp, key, "", deleted=True)
    members = [f"{encode_basestring(c.name)}:{canonical_value(c.type, values[c.name])}" for c in entity.schema.columns]
    return Row(timestamp, key, f"{{{','.join(members)}}}")


def _fetch_rows(entity: PolledObject, query: Query) -> list[Row]:
    rest, column = entity.org.rest, entity.timestamp_column
    names = tuple(name for name in (ID, column, IS_DELETED) if name in entity.described.schema.names)
    listed = list(rest.query(soql.page(entity.table, names, column, query)))
    ids = [full_id(values[ID]) for values in listed if not values.get(IS_DELETED)]
    result = fetch(rest, entity.schema, ids, rest.describe)
    if result.missing:
        raise SourceUnavailable(_missing(entity.table, len(result.missing)))
    rows: list[Row] = []
    for values in listed:
        row = result.rows.get(full_id(values[ID]))
        key, timestamp = key_of(values[ID]), _parse_timestamp(values[column])
        if row is None:
            rows.append(Row(timestamp, key, "", deleted=True))
        else:
            rows.append(Row(timestamp, key, row.after))
    return rows


def _parse_timestamp(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _missing(table: str, count: int) -> Problem:
    return Problem(
        "SRC057",
        f"records of {table} disappeared while they were read",
        where=table,
        found=f"{count:,} listed records are not returned by their ids",
        data="nothing of this page was used",
        do="wait for the next try; if the problem persists, check whether the user can still see every record",
    )


def _unreadable(table: str, error: str) -> Problem:
    return Problem(
        "SRC056",
        f"a record of {table} has a value that does not match its column's type",
        where=table,
        found=error,
        do="wait for the next run, which describes the object again; if the problem persists, check the field's type",
        data="nothing of this page was used",
    )
