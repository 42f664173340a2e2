"""Rows of a copy in the column types of their table. Pure.

Texts of a bulk result are cast as whole columns. Where Arrow hesitates, over an exponent, a digit too many, a whole
number with ``.0``, the values go the way that those of REST and of events go, one by one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.values import NULL, Convert, WrongValue, from_json, from_text
from airflow_cdc_provider.core.table.schema import Column, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


def typed(texts: pa.Table, schema: TableSchema) -> pa.Table:
    """The table's columns in their types. Raises DecodeError where a value is none of its column's type."""
    import pyarrow as pa

    arrays = [_typed(texts[column.name], column) for column in schema.columns]
    return pa.table(arrays, schema=arrow_schema(schema))


def typed_rows(rows: Sequence[Mapping[str, Any]], schema: TableSchema) -> pa.Table:
    """Rows that came by REST, their reals as Decimal. Raises DecodeError."""
    import pyarrow as pa

    arrays = [_array([row[column.name] for row in rows], column, from_json(column.type)) for column in schema.columns]
    return pa.table(arrays, schema=arrow_schema(schema))


def _typed(texts: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    import pyarrow as pa

    wanted = arrow_type(column.type)
    if wanted == pa.string():
        return texts
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        return pa.chunked_array([_array(texts.to_pylist(), column, from_text(column.type))])


def _array(values: Sequence[Any], column: Column, convert: Convert) -> pa.Array:
    """By way of canonical texts, which Arrow does read."""
    import pyarrow as pa

    try:
        texts = [_bare(convert(value)) for value in values]
    except WrongValue as error:
        raise DecodeError(f"column {column.name}: {error}") from error
    return pa.array(texts, pa.string()).cast(arrow_type(column.type))


def _bare(value: str) -> str | None:
    if value == NULL:
        return None
    if value[0] != '"':
        return value
    return value[1:-1] if "\\" not in value else str(json.loads(value))
