"""Records asked for by their ids: what a gap hides, and what an event said too little of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.query import name
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest, Row
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import WrongValue, from_json
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.table.schema import TableSchema

IDS_PER_QUERY, ROWS_PER_QUERY = 300, 50
"""As many ids as fit into the address of a query beside three columns, beside all."""
NO_FIELD = "INVALID_FIELD"


@dataclass(frozen=True)
class Found:
    """``after``: canonical JSON of the columns. ``modstamp``: when the record was changed last, None where its object
    does not tell: events of that second or later count on top of it."""

    after: str
    modstamp: datetime | None


@dataclass(frozen=True)
class Fetched:
    """Every id that was asked for stands in one of the three. ``deleted``: those in the recycle bin, and when each was
    changed last. ``gone``: nobody knows it: deleted for good, or hidden from the user."""

    found: dict[str, Found] = field(default_factory=dict)
    deleted: dict[str, datetime | None] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()


def fetch(rest: Rest, schema: TableSchema, ids: Sequence[str], describe: Callable[[str], ObjectSchema]) -> Fetched:
    """Records whole, 2,000 a call; a column that is no longer there is left out of the images.

    Raises what ``Http.send`` raises, and Unreadable where a value is none of its column's type.
    """
    shape = _shape(schema, describe)
    try:
        rows = rest.retrieve(schema.table, ids, shape.fields)
    except SourceUnavailable as error:
        if not any(NO_FIELD in problem.found for problem in error.problems):
            raise
        shape = _shape(schema, describe)  # a field went between the two calls
        rows = rest.retrieve(schema.table, ids, shape.fields)
    found = {one: _found(row, shape) for one, row in rows.items() if row is not None}
    missing = [one for one, row in rows.items() if row is None]
    deleted: dict[str, datetime | None] = {}
    archived: list[str] = []
    for row in _queried(rest, shape, shape.fate, missing, IDS_PER_QUERY):
        one = full_id(str(row[ID]))
        if row[IS_DELETED]:
            deleted[one] = _changed(row, shape)
        else:
            archived.append(one)
    for row in _queried(rest, shape, shape.fields, archived, ROWS_PER_QUERY):
        found[full_id(str(row[ID]))] = _found(row, shape)
    return Fetched(found, deleted, frozenset(missing) - found.keys() - deleted.keys())


def fetched_image(row: Mapping[str, Any], schema: TableSchema) -> str:
    """Canonical JSON of the columns, as an event would tell them. ``row`` has its reals as Decimal.
    Raises DecodeError where a value is none of its column's type."""
    members = []
    for column in schema.columns:
        try:
            text = from_json(column.type)(row[column.name])
        except WrongValue as error:
            raise DecodeError(f"column {column.name}: {error}") from error
        members.append(f"{encode_basestring(column.name)}:{text}")
    return f"{{{','.join(members)}}}"


@dataclass(frozen=True)
class _Shape:
    """The columns of the table that are there now. ``fate`` are those that tell what became of a record; none where the
    object has no recycle bin."""

    schema: TableSchema
    modstamp: str
    fate: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((ID, *self.schema.names, *([self.modstamp] if self.modstamp else []))))


def _shape(schema: TableSchema, describe: Callable[[str], ObjectSchema]) -> _Shape:
    now = describe(schema.table)
    there = now.schema.names
    columns = tuple(column for column in schema.columns if column.name in there)
    fate = tuple(one for one in (ID, IS_DELETED, now.modstamp) if one in there) if IS_DELETED in there else ()
    return _Shape(replace(schema, columns=columns), now.modstamp, fate)


def _found(row: Row, shape: _Shape) -> Found:
    return Found(fetched_image(row, shape.schema), _changed(row, shape))


def _changed(row: Row, shape: _Shape) -> datetime | None:
    stamp = row[shape.modstamp] if shape.modstamp else None
    return datetime.fromisoformat(stamp).astimezone(UTC) if stamp else None


def _queried(rest: Rest, shape: _Shape, columns: Sequence[str], ids: Sequence[str], at_once: int) -> Iterator[Row]:
    """Deleted and archived records, too."""
    for start in range(0, len(ids) if columns else 0, at_once):
        some = ", ".join(f"'{full_id(one)}'" for one in ids[start : start + at_once])
        query = f"SELECT {', '.join(map(name, columns))} FROM {name(shape.schema.table)} WHERE {ID} IN ({some})"
        yield from rest.query(query, deleted=True)
