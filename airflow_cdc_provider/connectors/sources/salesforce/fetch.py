"""Fetch records by their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.any_type import json_converter
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.query import checked_name
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest, Row
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import WrongValue
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.table.schema import Column, LogicalType, TableSchema

FEW_COLUMNS = 3
IDS_PER_QUERY, ROWS_PER_QUERY = 300, 50
"""How many ids fit into the URL of a query with few columns, with all columns."""
NO_FIELD = "INVALID_FIELD"


@dataclass(frozen=True)
class FetchedRow:
    """``after``: canonical JSON of the columns. ``modstamp``: time of the record's last change, None if the object has
    no such column. Events of that second or later are applied on top of the row."""

    after: str
    modstamp: datetime | None


@dataclass(frozen=True)
class FetchResult:
    """Every requested id is in one of the four. ``deleted``: ids of records in the recycle bin, with the time of their
    last change. ``missing``: ids of records that were deleted permanently, or are hidden from the user. ``unreadable``:
    ids of records with a value that the schema cannot have, and why."""

    rows: dict[str, FetchedRow] = field(default_factory=dict)
    deleted: dict[str, datetime | None] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()


def fetch(rest: Rest, schema: TableSchema, ids: Sequence[str], describe: Callable[[str], ObjectSchema]) -> FetchResult:
    """As ``fetch_each``. Raises DecodeError if a record is unreadable."""
    result = fetch_each(rest, schema, ids, describe)
    for error in result.unreadable.values():
        raise DecodeError(error)
    return result


def fetch_each(
    rest: Rest, schema: TableSchema, ids: Sequence[str], describe: Callable[[str], ObjectSchema]
) -> FetchResult:
    """Whole records, 2,000 per call. Columns that no longer exist are omitted from the images. A value of a column
    whose type is another one now is never rounded. Raises what ``Http.send`` raises."""
    columns = _current_columns(schema, describe)
    try:
        retrieved = rest.retrieve(schema.table, ids, columns.all)
    except SourceUnavailable as error:
        if not any(NO_FIELD in problem.found for problem in error.problems):
            raise
        columns = _current_columns(schema, describe)  # a field was deleted between the two calls
        retrieved = rest.retrieve(schema.table, ids, columns.all)
    result = FetchResult()
    _add_rows(result, {record_id: row for record_id, row in retrieved.items() if row is not None}, columns)
    missing = [record_id for record_id, row in retrieved.items() if row is None]
    archived: list[str] = []
    for row in query_by_ids(rest, schema.table, columns.deletion, missing):
        record_id = full_id(str(row[ID]))
        if row[IS_DELETED]:
            result.deleted[record_id] = _modstamp(row, columns)
        else:
            archived.append(record_id)
    queried = query_by_ids(rest, schema.table, columns.all, archived)
    _add_rows(result, {full_id(str(row[ID])): row for row in queried}, columns)
    found = {*result.rows, *result.deleted, *result.unreadable}
    return replace(result, missing=frozenset(missing) - found)


def _add_rows(result: FetchResult, rows: Mapping[str, Row], columns: _CurrentColumns) -> None:
    for record_id, row in rows.items():
        try:
            result.rows[record_id] = FetchedRow(
                row_image(row, columns.schema, columns.retyped), _modstamp(row, columns)
            )
        except DecodeError as error:
            result.unreadable[record_id] = str(error)


def row_image(
    row: Mapping[str, Any], schema: TableSchema, retyped: Mapping[str, LogicalType] = MappingProxyType({})
) -> str:
    """Canonical JSON of the columns, as an event has them. ``row`` has real numbers as Decimal. ``retyped``: the types
    of columns whose field has another one now; only a value that both have is converted. Raises DecodeError if a value
    does not have its column's type."""
    members = []
    for column in schema.columns:
        now = retyped.get(column.name)
        try:
            text = _value(row[column.name], column, now)
        except WrongValue as error:
            changed = f"; the type of the field was changed: it is {now} now" if now else ""
            raise DecodeError(f"column {column.name}: {error}{changed}") from error
        members.append(f"{encode_basestring(column.name)}:{text}")
    return f"{{{','.join(members)}}}"


def _value(value: Any, column: Column, now: LogicalType | None) -> str:
    if now and now.kind is not column.type.kind and value not in (None, ""):
        raise WrongValue(f"not of type {column.type}")
    return json_converter(column, exact=now is not None)(value)


@dataclass(frozen=True)
class _CurrentColumns:
    """``schema``: the columns of the table that still exist. ``retyped``: the present types of those whose type is
    another one now. ``deletion``: columns that show whether a record is
    deleted; none if the object has no recycle bin."""

    schema: TableSchema
    retyped: Mapping[str, LogicalType]
    modstamp: str
    deletion: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((ID, *self.schema.names, *([self.modstamp] if self.modstamp else []))))


def _current_columns(schema: TableSchema, describe: Callable[[str], ObjectSchema]) -> _CurrentColumns:
    entity = describe(schema.table)
    names = entity.schema.names
    columns = tuple(column for column in schema.columns if column.name in names)
    deletion = tuple(c for c in (ID, IS_DELETED, entity.modstamp) if c in names) if IS_DELETED in names else ()
    types = {column.name: entity.schema.column(column.name).type for column in columns}
    retyped = {column.name: types[column.name] for column in columns if column.type != types[column.name]}
    return _CurrentColumns(replace(schema, columns=columns), retyped, entity.modstamp, deletion)


def _modstamp(row: Row, columns: _CurrentColumns) -> datetime | None:
    text = row[columns.modstamp] if columns.modstamp else None
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def query_by_ids(
    rest: Rest, table: str, columns: Sequence[str], ids: Sequence[str], condition: str = ""
) -> Iterator[Row]:
    """Those of the records that meet the condition, as many at a time as the URL has room for."""
    among = f"{condition} AND {ID} IN" if condition else f"{ID} IN"
    ids_per_query = IDS_PER_QUERY if len(columns) <= FEW_COLUMNS else ROWS_PER_QUERY
    for start in range(0, len(ids) if columns else 0, ids_per_query):
        listed = ", ".join(f"'{full_id(text)}'" for text in ids[start : start + ids_per_query])
        query = f"SELECT {', '.join(map(checked_name, columns))} FROM {checked_name(table)} WHERE {among} ({listed})"
        yield from rest.query(query)
