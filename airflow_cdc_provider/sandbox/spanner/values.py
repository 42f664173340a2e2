"""Values of Spanner's types: what a column accepts, how Spanner writes it, and in which order keys come."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from google.protobuf.struct_pb2 import Value

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.errors import Refused, failed_precondition, invalid
from airflow_cdc_provider.sandbox.spanner.schema import SpannerColumn

Stored = Any
"""None, bool, float, a text as Spanner writes it, or a list of these."""

INTEGER = re.compile(r"-?\d+")
TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")
NON_FINITE = ("NaN", "Infinity", "-Infinity")


def stored(value: Value, column: SpannerColumn, commit_time: str) -> Stored:
    """The value as it is stored. Raises Refused where the column does not accept it."""
    as_stored = None if column.is_array else TEXTS.get(column.type)
    if as_stored and ((text := value.string_value) or value.HasField("string_value")):
        return as_stored(text, column, commit_time)
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        if column.not_null:
            raise failed_precondition(f"{column.name} must not be NULL in table {column.table}.")
        return None
    if column.is_array:
        element = column.element()
        if kind != "list_value":
            raise _expected(column, "ARRAY")
        return [stored(one, element, commit_time) for one in value.list_value.values]
    return _scalar(value, kind or "", column)


def _scalar(value: Value, kind: str, column: SpannerColumn) -> Stored:
    match column.type:
        case "BOOL":
            if kind != "bool_value":
                raise _expected(column, "BOOL")
            return value.bool_value
        case "FLOAT64" | "FLOAT32":
            if kind == "string_value" and value.string_value in NON_FINITE:
                return float(value.string_value)
            if kind != "number_value":
                raise _expected(column, column.type)
            return value.number_value
    raise _expected(column, column.type)


def sort_key(found: Stored, column: SpannerColumn) -> tuple[Any, ...]:
    """NULL comes first, and NaN before the other numbers."""
    if found is None:
        return (0,)
    match column.type:
        case "INT64":
            return (1, int(found))
        case "NUMERIC":
            return (1, Decimal(found))
        case "BYTES":
            return (1, b64decode(found))
        case "FLOAT64" | "FLOAT32":
            return (1, (found == found, found if found == found else 0.0))
        case "TIMESTAMP":
            return (1, found.removesuffix("Z"))
    return (1, found)


def size_of(found: Stored) -> int:
    if isinstance(found, str):
        return len(found) if found.isascii() else len(found.encode())
    return sum(map(size_of, found)) if isinstance(found, list) else 8


def as_value(found: Stored) -> Value:
    match found:
        case None:
            return Value(null_value=0)  # type: ignore[arg-type]
        case bool():
            return Value(bool_value=found)
        case float():
            text = {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(found, "" if found == found else "NaN")
            return Value(string_value=text) if text else Value(number_value=found)
        case list():
            whole = Value()
            whole.list_value.values.extend(map(as_value, found))
            return whole
        case _:
            return Value(string_value=str(found))


def _integer(text: str, column: SpannerColumn, commit_time: str) -> str:
    if INTEGER.fullmatch(text) and -(2**63) <= (number := int(text)) < 2**63:
        return str(number)
    raise _expected(column, "INT64")


def _string(text: str, column: SpannerColumn, commit_time: str) -> str:
    return _within(text, len(text), column, column.length or limits.STRING_CHARACTERS)


def _json(text: str, column: SpannerColumn, commit_time: str) -> str:
    return _within(text, len(text.encode()), column, limits.VALUE_BYTES)


def _bytes(text: str, column: SpannerColumn, commit_time: str) -> str:
    return _within(text, len(_decoded(text, column)), column, column.length or limits.VALUE_BYTES)


def _numeric(text: str, column: SpannerColumn, commit_time: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _expected(column, "NUMERIC") from None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise _expected(column, "NUMERIC")
    scale, whole = max(-exponent, 0), len(digits) + exponent
    if scale > limits.NUMERIC_SCALE or whole > limits.NUMERIC_WHOLE_DIGITS:
        raise _expected(column, "NUMERIC")
    written = format(number, "f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def _date(text: str, column: SpannerColumn, commit_time: str) -> str:
    try:
        if len(text) != 10:
            raise ValueError
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise _expected(column, "DATE") from None


def _timestamp(text: str, column: SpannerColumn, commit_time: str) -> str:
    if text == "spanner.commit_timestamp()":
        if not column.commit_timestamp:
            raise failed_precondition(f"Column {column.name} does not allow commit timestamps.")
        return commit_time
    match = TIMESTAMP.fullmatch(text)
    if match is None:
        raise _expected(column, "TIMESTAMP")
    fraction = (match[2] or "").rstrip("0")
    return f"{match[1]}.{fraction}Z" if fraction else f"{match[1]}Z"


def _decoded(text: str, column: SpannerColumn) -> bytes:
    try:
        return b64decode(text, validate=True)
    except BadBase64:
        raise _expected(column, "BYTES") from None


def _within(text: str, size: int, column: SpannerColumn, limit: int) -> str:
    if size > limit:
        raise failed_precondition(
            f"New value exceeds the maximum size limit for this column: {column.table}.{column.name}, size: {size},"
            f" limit: {limit}."
        )
    return text


def _expected(column: SpannerColumn, kind: str) -> Refused:
    return invalid(f"Invalid value for column {column.name} in table {column.table}: Expected {kind}.")


TEXTS: dict[str, Callable[[str, SpannerColumn, str], str]] = {
    "INT64": _integer,
    "STRING": _string,
    "JSON": _json,
    "BYTES": _bytes,
    "NUMERIC": _numeric,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
}
"""How a value that comes as a text is stored: the text, its column, the time of the commit."""
