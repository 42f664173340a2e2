"""From rows of a driver to those of a page, and of a copy. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.jdbc_poll.select import Selectable
from airflow_cdc_provider.connectors.jdbc_poll.values import in_utc, plain
from airflow_cdc_provider.connectors.polling.canonical import told
from airflow_cdc_provider.connectors.polling.pages import Row
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, unrepresentable_row
from airflow_cdc_provider.core.errors import BadRecordMet, CheckFailed, Problem
from airflow_cdc_provider.core.tables import Kind

if TYPE_CHECKING:
    import pyarrow as pa


class Rows:
    """Makes rows out of what ``Selectable.page`` and ``Selectable.rows`` select."""

    def __init__(self, selectable: Selectable) -> None:
        schema, source = selectable.schema, selectable.described.schema
        self._schema = schema
        self._types = [column.type for column in schema.columns]
        self._members = [f"{encode_basestring(column.name)}:" for column in schema.columns]
        self._key_types = [source.column(name).type for name in schema.key]
        self._naive = source.column(selectable.stamp).type.kind is Kind.TIMESTAMP
        self._offset = selectable.offset

    def page_row(self, values: Sequence[Any]) -> Row:
        """Raises CheckFailed (CPY009) where it holds what no target can: this table waits, the others do not."""
        width = len(self._types)
        stamp, taken = values[-2], values[-1]
        try:
            key = self._key(values[width : width + len(self._key_types)])
            texts = [
                member + told(kind, plain(kind, value))
                for member, kind, value in zip(self._members, self._types, values[:width], strict=True)
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
        for column, values in zip(self._schema.columns, columns[: len(self._types)], strict=True):
            try:
                arrays.append(pa.array([plain(column.type, value) for value in values], arrow_type(column.type)))
            except Unrepresentable as error:
                raise BadRecordMet(unrepresentable_row(self._schema, [column.name], str(error), False)) from error
        return pa.table(arrays, schema=arrow_schema(self._schema))

    def _lacking(self, values: Sequence[Any], error: Unrepresentable) -> Problem:
        columns = []
        for column, value in zip(self._schema.columns, values, strict=False):
            try:
                plain(column.type, value)
            except Unrepresentable:
                columns.append(column.name)
        return unrepresentable_row(self._schema, columns or self._schema.key, str(error), False)

    def _key(self, values: Sequence[Any]) -> str:
        parts = [told(kind, plain(kind, value)) for kind, value in zip(self._key_types, values, strict=True)]
        return f"[{','.join(parts)}]"

    def _stamp(self, value: datetime | None) -> datetime | None:
        if not isinstance(value, datetime):
            return None
        return in_utc(value) - self._offset if self._naive else in_utc(value)
