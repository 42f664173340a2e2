"""Convert rows of a driver to those of a page, and of a copy. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.copied.altered_tables import of_type
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import EXACT_TEXT, TableQueries
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import ReadValue, column_value, in_utc
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.sources.polling.pages import Row
from airflow_cdc_provider.connectors.unrepresentable import (
    Unrepresentable,
    none_if_unrepresentable,
    reason,
    text_if_unrepresentable,
    unrepresentable_row,
)
from airflow_cdc_provider.core.errors import BadRecordFound, CheckFailed, Problem
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS

if TYPE_CHECKING:
    import pyarrow as pa

CODEC = "texts of a polled row"


class RowConverter:
    """Converts the results of ``TableQueries.page`` and ``TableQueries.rows``."""

    def __init__(self, queries: TableQueries) -> None:
        schema, source = queries.schema, queries.described.schema
        self._schema, self._source = schema, source
        self._has_exact_text = queries.system in EXACT_TEXT
        self._members = [f"{encode_basestring(column.name)}:" for column in schema.columns]
        self._readers = [_reader(schema, column, queries.read_value) for column in schema.columns]
        self._key_columns = [(schema.column(name).type, self._readers[schema.names.index(name)]) for name in schema.key]
        self._timestamp_type = source.column(queries.timestamp_column).type
        self._offset = queries.offset
        self._filter = queries.row_filter
        self._filter_start = len(self._readers) + len(schema.key) + 1

    def page_row(self, values: Sequence[Any]) -> Row:
        """A value that no target can store makes an undecoded row. Raises CheckFailed (CPY009) for one in the key, or
        that the row filter cannot compare, which stops this table and no other."""
        width = len(self._readers)
        timestamp = self._timestamp(values[self._filter_start - 1])
        try:
            key = self._key(values[width : width + len(self._key_columns)])
        except Unrepresentable as error:
            raise CheckFailed(self._problem(self._schema.key, error)) from error
        try:
            selected = self._selects(values)
        except Unrepresentable as error:
            raise CheckFailed(self._problem(self._filter.columns, error)) from error
        if not selected:
            return Row(timestamp, key, "", deleted=True)
        try:
            texts = [
                member + canonical_value(column.type, read(value))
                for member, column, read, value in zip(
                    self._members, self._schema.columns, self._readers, values[:width], strict=True
                )
            ]
        except Unrepresentable:
            return Row(timestamp, key, "", undecoded=self._undecoded(values[:width]))
        return Row(timestamp, key, f"{{{','.join(texts)}}}")

    def table(self, rows: Iterable[Sequence[Any]]) -> pa.Table:
        """Rows of a copy that match the row filter, in the table's types. Raises BadRecordFound (CPY009), and
        SourceUnavailable (CPY012) for a value that the type which the column had does not have."""
        import pyarrow as pa

        try:
            selected = [row for row in rows if self._selects(row)]
        except Unrepresentable as error:
            raise BadRecordFound(self._problem(self._filter.columns, error)) from error
        if not selected:
            return arrow_schema(self._schema).empty_table()
        columns = list(zip(*selected, strict=True))
        arrays = []
        width = len(self._readers)
        for column, read, values in zip(self._schema.columns, self._readers, columns[:width], strict=True):
            now = self._source.column(column.text_of or column.name).type
            try:
                with of_type(self._schema.table, column.name, column.type, now):
                    arrays.append(pa.array([read(value) for value in values], arrow_type(column.type)))
            except Unrepresentable as error:
                raise BadRecordFound(self._problem([column.name], error)) from error
        return pa.table(arrays, schema=arrow_schema(self._schema))

    def _selects(self, values: Sequence[Any]) -> bool:
        return self._filter.selects(values[self._filter_start :])

    def _problem(self, columns: Sequence[str], error: Unrepresentable) -> Problem:
        return unrepresentable_row(self._schema, columns, str(error), self._has_exact_text)

    def _undecoded(self, values: Sequence[Any]) -> UndecodedRecord:
        known, others, what = dict[str, Any](), dict[str, str](), ""
        for column, read, value in zip(self._schema.columns, self._readers, values, strict=True):
            try:
                known[column.name] = json.loads(canonical_value(column.type, read(value)))
            except Unrepresentable as error:
                others[column.name], what = error.text, str(error)
        why = reason([*others], what, self._schema.key, self._has_exact_text)
        raw = base64_of(json.dumps(others).encode())
        return UndecodedRecord(CODEC, raw, why, op=Operation.UPSERT, known=known, columns=tuple(others))

    def _key(self, values: Sequence[Any]) -> str:
        parts = [
            canonical_value(kind, read(value)) for (kind, read), value in zip(self._key_columns, values, strict=True)
        ]
        return f"[{','.join(parts)}]"

    def _timestamp(self, value: Any) -> datetime | None:
        timestamp = column_value(self._timestamp_type, value)
        if timestamp is None:
            return None
        return in_utc(timestamp) - self._offset if self._timestamp_type.kind is Kind.TIMESTAMP else in_utc(timestamp)


def _reader(schema: TableSchema, column: Column, read_value: ReadValue) -> Callable[[Any], Any]:
    source = schema.column(column.text_of) if column.text_of else column

    def read(value: Any) -> Any:
        return read_value(source.type, value)

    if column.text_of:
        return text_if_unrepresentable(read)
    if schema.has_text_of(column.name):
        return none_if_unrepresentable(read)
    if column.name in schema.key and column.type.kind in FLOATS:
        return _unsigned_zero(read)
    return read


def _unsigned_zero(read: Callable[[Any], Any]) -> Callable[[Any], float | None]:
    """In a database 0.0 and -0.0 are the same key."""

    def read_key(value: Any) -> float | None:
        number: float | None = read(value)
        return None if number is None else number + 0.0

    return read_key
