"""From rows of a driver to those of a page, and of a copy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import SPELLED, Selectable
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import in_utc, plain
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.sources.polling.pages import Row
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, lacking, or_none, unrepresentable_row
from airflow_cdc_provider.core.errors import BadRecordMet, CheckFailed, Problem
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})


class Rows:
    """Makes rows out of what ``Selectable.page`` and ``Selectable.rows`` select."""

    def __init__(self, selectable: Selectable) -> None:
        schema, source = selectable.schema, selectable.described.schema
        self._schema = schema
        self._spelled = selectable.system in SPELLED
        self._members = [f"{encode_basestring(column.name)}:" for column in schema.columns]
        self._readers = [_reader(schema, column) for column in schema.columns]
        self._key_columns = [(schema.column(name).type, self._readers[schema.names.index(name)]) for name in schema.key]
        self._stamp_type = source.column(selectable.stamp).type
        self._offset = selectable.offset

    def page_row(self, values: Sequence[Any]) -> Row:
        """Raises CheckFailed (CPY009) where it holds what no target can: this table waits, the others do not."""
        width = len(self._readers)
        stamp, taken = values[-2], values[-1]
        try:
            key = self._key(values[width : width + len(self._key_columns)])
            texts = [
                member + canonical_value(column.type, read(value))
                for member, column, read, value in zip(
                    self._members, self._schema.columns, self._readers, values[:width], strict=True
                )
            ]
        except Unrepresentable as error:
            raise CheckFailed(self._lacking(values, error)) from error
        image = f"{{{','.join(texts)}}}" if taken else ""
        return Row(self._stamp(stamp), key, image, not taken)

    def table(self, rows: Iterable[Sequence[Any]]) -> pa.Table:
        """Rows of a copy, in the table's types. Raises BadRecordMet (CPY009)."""
        import pyarrow as pa

        columns = list(zip(*rows, strict=True))
        arrays = []
        width = len(self._readers)
        for column, read, values in zip(self._schema.columns, self._readers, columns[:width], strict=True):
            try:
                arrays.append(pa.array([read(value) for value in values], arrow_type(column.type)))
            except Unrepresentable as error:
                problem = unrepresentable_row(self._schema, [column.name], str(error), self._spelled)
                raise BadRecordMet(problem) from error
        return pa.table(arrays, schema=arrow_schema(self._schema))

    def _lacking(self, values: Sequence[Any], error: Unrepresentable) -> Problem:
        columns = []
        for column, read, value in zip(self._schema.columns, self._readers, values, strict=False):
            try:
                read(value)
            except Unrepresentable:
                columns.append(column.name)
        return unrepresentable_row(self._schema, columns or self._schema.key, str(error), self._spelled)

    def _key(self, values: Sequence[Any]) -> str:
        parts = [
            canonical_value(kind, read(value)) for (kind, read), value in zip(self._key_columns, values, strict=True)
        ]
        return f"[{','.join(parts)}]"

    def _stamp(self, value: Any) -> datetime | None:
        moment = plain(self._stamp_type, value)
        if moment is None:
            return None
        return in_utc(moment) - self._offset if self._stamp_type.kind is Kind.TIMESTAMP else in_utc(moment)


def _reader(schema: TableSchema, column: Column) -> Callable[[Any], Any]:
    held = schema.column(column.text_of) if column.text_of else column

    def read(value: Any) -> Any:
        return plain(held.type, value)

    if column.text_of:
        return lacking(read)
    if schema.has_text_of(column.name):
        return or_none(read)
    if column.name in schema.key and column.type.kind in FLOATS:
        return _unsigned_zero
    return read


def _unsigned_zero(value: Any) -> float | None:
    """To a database 0.0 and -0.0 are one key."""
    return None if value is None else float(value) + 0.0
