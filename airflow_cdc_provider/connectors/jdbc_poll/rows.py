"""From rows of a driver to those of a page, and of a copy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.jdbc_poll.select import Selectable
from airflow_cdc_provider.connectors.jdbc_poll.values import in_utc, plain
from airflow_cdc_provider.connectors.polling.canonical import told
from airflow_cdc_provider.connectors.polling.pages import Row
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
        warnings: list[str] = []
        width = len(self._types)
        key = self._key(values[width : width + len(self._key_types)], warnings.append)
        stamp, taken = values[-2], values[-1]
        texts = [
            member + told(kind, plain(kind, value, warnings.append))
            for member, kind, value in zip(self._members, self._types, values[:width], strict=True)
        ]
        image = f"{{{','.join(texts)}}}" if taken else ""
        return Row(self._stamp(stamp), key, image, not taken, tuple(dict.fromkeys(warnings)))

    def table(self, rows: Iterable[Sequence[Any]]) -> pa.Table:
        """Rows of a copy, in the table's types."""
        import pyarrow as pa

        columns = list(zip(*rows, strict=True))
        arrays = [
            pa.array([plain(kind, value, _unheard) for value in values], arrow_type(kind))
            for kind, values in zip(self._types, columns[: len(self._types)], strict=True)
        ]
        return pa.table(arrays, schema=arrow_schema(self._schema))

    def _key(self, values: Sequence[Any], warn: Callable[[str], object]) -> str:
        parts = [told(kind, plain(kind, value, warn)) for kind, value in zip(self._key_types, values, strict=True)]
        return f"[{','.join(parts)}]"

    def _stamp(self, value: datetime | None) -> datetime | None:
        if not isinstance(value, datetime):
            return None
        return in_utc(value) - self._offset if self._naive else in_utc(value)


def _unheard(_code: str) -> None:
    """A copy has no place for the warnings of a row."""
