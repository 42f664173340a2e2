"""Arrow columns as Spanner's values in protobuf, and back.

Spanner writes 64-bit integers, numbers, dates, times and bytes as texts. Texts here are those that Spanner returns, so
that keys can be compared by them.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.struct_pb2 import Value

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.targets.spanner.columns import FLOATS, SpannerType, StoredColumn

NULL = Value(null_value=0)  # type: ignore[arg-type]


def texts(array: pa.Array, kind: SpannerType) -> pa.Array:
    """The canonical text of each value. Floats have the shortest text of their own precision."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    match kind:
        case SpannerType.BYTES:
            return pa.array(
                (None if value is None else b64encode(value).decode() for value in array.to_pylist()), pa.string()
            )
        case SpannerType.NUMERIC | SpannerType.STRING if pa.types.is_decimal(array.type):
            return _number_texts(array)
        case SpannerType.TIMESTAMP:
            written = pc.replace_substring(array.cast(pa.timestamp("us")).cast(pa.string()), " ", "T")
            short = pc.ascii_rtrim(pc.ascii_rtrim(written, "0"), ".")
            return pc.binary_join_element_wise(short, "Z", "")
        case SpannerType.FLOAT32 | SpannerType.FLOAT64:
            written = array.cast(pa.string())
            return pc.replace_substring(pc.replace_substring(written, "nan", "NaN"), "inf", "Infinity")
        case _:
            return array.cast(pa.string())


def scalars(array: pa.Array, kind: SpannerType) -> Sequence[str | float | bool | None]:
    """As ``text_of`` gives the values that are written."""
    if kind is SpannerType.BOOL:
        found: Sequence[bool | None] = array.to_pylist()
        return found
    written: Sequence[str | None] = texts(array, kind).to_pylist()
    if kind in FLOATS:
        pairs = zip(array.to_pylist(), written, strict=True)
        return [number if number is not None and isfinite(number) else text for number, text in pairs]
    return written


def decode(values: Sequence[Value], column: StoredColumn) -> pa.Array:
    """With the Arrow type of the column's logical type."""
    target = arrow_type(column.logical)
    if column.type is SpannerType.BOOL:
        return pa.array((None if _is_null(value) else value.bool_value for value in values), target)
    if column.type in FLOATS:
        return pa.array((None if _is_null(value) else _float_of(value) for value in values), target)
    found = [None if _is_null(value) else value.string_value for value in values]
    if column.type is SpannerType.BYTES:
        return pa.array((None if text is None else b64decode(text) for text in found), target)
    if column.type is SpannerType.TIMESTAMP:
        plain = pa.array((None if text is None else _microseconds(text) for text in found), pa.string())
        return plain.cast(pa.timestamp("us")).cast(target)
    return pa.array(found, pa.string()).cast(target)


def text_of(value: Value) -> str | float | bool | None:
    """A scalar that is equal for equal values of one type, also if the server writes them in another way."""
    kind = value.WhichOneof("kind")
    return None if kind == "null_value" else getattr(value, str(kind))


def key_of(values: Iterable[Value], types: Sequence[SpannerType]) -> tuple[str | float | bool | None, ...]:
    return tuple(_comparable(text_of(value), kind) for value, kind in zip(values, types, strict=True))


def row_hashes(columns: Mapping[str, tuple[pa.Array, SpannerType]], rows: int) -> list[str]:
    """A hash of each row: equal only if all values are. A NULL does not count, so that adding a column without a value
    changes no hash. ``columns``: by name."""
    named = [(name, texts(array, kind).to_pylist()) for name, (array, kind) in sorted(columns.items())]
    return [
        hashlib.sha256(
            json.dumps([(name, found[row]) for name, found in named if found[row] is not None]).encode()
        ).hexdigest()
        for row in range(rows)
    ]


def text_value(text: str | None) -> Value:
    return NULL if text is None else Value(string_value=text)


def number_value(number: int | None) -> Value:
    return NULL if number is None else Value(string_value=str(number))


def number_text(number: Decimal) -> str:
    """Without exponent and without zeros at the end."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number_texts(array: pa.Array) -> pa.Array:
    """As ``number_text``. Arrow writes small numbers with an exponent."""
    written = array.cast(pa.string())
    short = pc.ascii_rtrim(pc.ascii_rtrim(written, "0"), ".") if array.type.scale > 0 else written
    exponents = pc.fill_null(pc.match_substring(written, "E"), False)
    if not pc.any(exponents).as_py():
        return short
    plain = pa.array([number_text(number) for number in array.filter(exponents).to_pylist()], pa.string())
    return pc.replace_with_mask(short, exponents, plain)


def _float_of(value: Value) -> float:
    return float(value.string_value) if value.WhichOneof("kind") == "string_value" else value.number_value


def _is_null(value: Value) -> bool:
    return value.WhichOneof("kind") == "null_value"


def _comparable(found: Any, kind: SpannerType) -> str | float | bool | None:
    if found is None:
        return None
    if kind is SpannerType.TIMESTAMP:
        return _short_time(found.removesuffix("Z"))
    return number_text(Decimal(found)) if kind is SpannerType.NUMERIC else found


def _short_time(text: str) -> str:
    """Without zeros at the end of the fraction."""
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}Z"


def _microseconds(text: str) -> str:
    return re.sub(r"(\.\d{6})\d+", r"\1", text.removesuffix("Z"))
