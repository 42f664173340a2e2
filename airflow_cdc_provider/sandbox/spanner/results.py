"""Rows as the messages of a result. Long texts continue in the next message, as Spanner's own do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from google.cloud import spanner_v1
from google.protobuf.struct_pb2 import Value

from airflow_cdc_provider.sandbox.spanner.schema import SpannerColumn

VALUES, CHARACTERS = 5_000, 100_000
"""Of one message, and of one value in it."""

PartialResultSet, ResultSetMetadata, Type = (
    kind.pb() for kind in (spanner_v1.PartialResultSet, spanner_v1.ResultSetMetadata, spanner_v1.Type)
)


def metadata(columns: Mapping[str, str | SpannerColumn], transaction_id: bytes = b"") -> Any:
    """``columns``: names, with the names of types or the columns of a table."""
    found = ResultSetMetadata()
    for name, kind in columns.items():
        found.row_type.fields.add(name=name, type_=_type(kind))
    if transaction_id:
        found.transaction.id = transaction_id
    return found


def partial_results(described: Any, rows: Iterable[Sequence[Value]]) -> Iterator[Any]:
    message = PartialResultSet(metadata=described)
    for row in rows:
        for value in row:
            while len(value.string_value) > CHARACTERS:
                message.values.add(string_value=value.string_value[:CHARACTERS])
                message.chunked_value = True
                yield message
                message, value = PartialResultSet(), Value(string_value=value.string_value[CHARACTERS:])
            message.values.append(value)
        if len(message.values) >= VALUES:
            yield message
            message = PartialResultSet()
    yield message


def _type(kind: str | SpannerColumn) -> Any:
    if isinstance(kind, str):
        return Type(code=getattr(spanner_v1.TypeCode, kind))
    if kind.is_array:
        return Type(code=spanner_v1.TypeCode.ARRAY, array_element_type=_type(kind.type))
    return _type(kind.type)
