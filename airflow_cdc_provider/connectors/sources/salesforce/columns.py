"""Convert rows of a copy to the column types of their table. Pure.

Texts of a bulk result are cast as whole columns. If Arrow cannot cast a column (exponents, too many digits, integers
with ``.0``), its values are converted one by one, as those of REST and of events are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.sources.salesforce.any_type import has_any_type, json_converter, text_converter
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError, MoreDigitsThanDescribed
from airflow_cdc_provider.connectors.sources.salesforce.values import NULL, Convert, MoreDigits, WrongValue
from airflow_cdc_provider.core.table.schema import Column, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


def cast_columns(texts: pa.Table, schema: TableSchema, exact: Collection[str] = ()) -> pa.Table:
    """Raises DecodeError if a value does not have its column's type; MoreDigitsThanDescribed instead of rounding one of
    the ``exact`` columns."""
    import pyarrow as pa

    arrays = [_cast(texts[column.name], column, column.name in exact) for column in schema.columns]
    return pa.table(arrays, schema=arrow_schema(schema))


def convert_rows(rows: Sequence[Mapping[str, Any]], schema: TableSchema, exact: Collection[str] = ()) -> pa.Table:
    """Rows from REST, with real numbers as Decimal. Raises what ``cast_columns`` raises."""
    import pyarrow as pa

    arrays = [
        _convert([row[column.name] for row in rows], column, json_converter(column, column.name in exact))
        for column in schema.columns
    ]
    return pa.table(arrays, schema=arrow_schema(schema))


def _cast(texts: pa.ChunkedArray, column: Column, exact: bool) -> pa.ChunkedArray:
    import pyarrow as pa

    target = arrow_type(column.type)
    if has_any_type(column):
        return pa.chunked_array([_convert(texts.to_pylist(), column, text_converter(column))])
    if target == pa.string():
        return texts
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        return pa.chunked_array([_convert(texts.to_pylist(), column, text_converter(column, exact))])


def _convert(values: Sequence[Any], column: Column, convert: Convert) -> pa.Array:
    """Arrow casts the canonical texts."""
    import pyarrow as pa

    try:
        texts = [_unquote(convert(value)) for value in values]
    except MoreDigits as error:
        raise MoreDigitsThanDescribed(column.name, str(error)) from error
    except WrongValue as error:
        raise DecodeError(f"column {column.name}: {error}") from error
    return pa.array(texts, pa.string()).cast(arrow_type(column.type))


def _unquote(value: str) -> str | None:
    if value == NULL:
        return None
    if value[0] != '"':
        return value
    return value[1:-1] if "\\" not in value else str(json.loads(value))
