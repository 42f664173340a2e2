"""Records of an answer as rows of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.sources.polling.pages import Query, Row
from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.fetch import fetch, fetched_image
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, described
from airflow_cdc_provider.connectors.sources.salesforce_poll import soql
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import Object
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable

if TYPE_CHECKING:
    import pyarrow as pa


def key_of(record_id: str) -> str:
    return json.dumps([full_id(record_id)])


def rows_of_rest(one: Object, query: Query) -> list[Row]:
    """A page. Where the object is too wide for one query, whole records are fetched by their ids: a row put together
    from several queries could be torn by a change between them."""
    text = soql.page(one.table, one.wide.names, one.stamp, query)
    try:
        if soql.fits(text):
            return [_row(one, values) for values in one.org.rest.query(text, deleted=True)]
        return _fetched(one, query)
    except DecodeError as error:
        raise SourceUnavailable(_unreadable(one.table, str(error))) from error


def rows_of_bulk(one: Object, rows: pa.Table) -> list[Row]:
    return [_typed_row(one, values) for values in rows.to_pylist()]


def _row(one: Object, values: Mapping[str, Any]) -> Row:
    key, stamp = key_of(values[ID]), _moment(values[one.stamp])
    if values.get(IS_DELETED):
        return Row(stamp, key, "", deleted=True)
    return Row(stamp, key, fetched_image(values, one.schema))


def _typed_row(one: Object, values: Mapping[str, Any]) -> Row:
    key, stamp = key_of(values[ID]), values[one.stamp]
    if values.get(IS_DELETED):
        return Row(stamp, key, "", deleted=True)
    members = [f"{encode_basestring(c.name)}:{canonical_value(c.type, values[c.name])}" for c in one.schema.columns]
    return Row(stamp, key, f"{{{','.join(members)}}}")


def _fetched(one: Object, query: Query) -> list[Row]:
    short = tuple(name for name in (ID, one.stamp, IS_DELETED) if name in one.described.schema.names)
    listed = list(one.org.rest.query(soql.page(one.table, short, one.stamp, query), deleted=True))
    live = [full_id(values[ID]) for values in listed if not values.get(IS_DELETED)]
    told_of = fetch(one.org.rest, one.schema, live, lambda name: described(one.org.rest.describe(name)))
    if told_of.gone:
        raise SourceUnavailable(_vanished(one.table, len(told_of.gone)))
    rows: list[Row] = []
    for values in listed:
        found = told_of.found.get(full_id(values[ID]))
        key, stamp = key_of(values[ID]), _moment(values[one.stamp])
        if found is None:
            rows.append(Row(stamp, key, "", deleted=True))
        else:
            rows.append(Row(stamp, key, found.after))
    return rows


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _vanished(table: str, count: int) -> Problem:
    return Problem(
        "SRC057",
        f"records of {table} went while they were read",
        where=table,
        found=f"{count:,} that were listed are known to nobody",
        data="nothing of this page was used",
        do="the next try asks again; if it lasts, look whether the user may still see every record",
    )


def _unreadable(table: str, what: str) -> Problem:
    return Problem(
        "SRC056",
        f"a record of {table} holds a value that is none of its column's type",
        where=table,
        found=what,
        do="the next run describes the object anew; if it lasts, look at the field's type",
        data="nothing of this page was used",
    )
