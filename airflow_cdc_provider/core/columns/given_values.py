"""Values that an operator gives as texts, in the form in which every source writes them. Pure."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import datetime

from airflow_cdc_provider.core.columns.casts import cast_function
from airflow_cdc_provider.core.columns.values import FLOATS, NON_FINITE, to_json
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

Canonical = bool | int | float | str
NO_NUMBERS = frozenset({*NON_FINITE.values(), "NaN"})
FORMS = {
    Kind.BOOLEAN: "true or false",
    Kind.INT16: "an integer of 16 bits",
    Kind.INT32: "an integer of 32 bits",
    Kind.INT64: "an integer of 64 bits",
    Kind.FLOAT32: "a number whose digits a float of 32 bits keeps, or NaN, Infinity, -Infinity",
    Kind.FLOAT64: "a number whose digits a float of 64 bits keeps, or NaN, Infinity, -Infinity",
    Kind.TEXT: "a text of Unicode characters",
    Kind.JSON: "a JSON document",
    Kind.UUID: "a UUID",
    Kind.BYTES: "bytes in base64",
    Kind.DATE: "a date, as 2026-05-01",
    Kind.TIMESTAMP: "a time without a zone, as 2026-05-01T12:00:00.5",
    Kind.TIMESTAMPTZ: "a time with its zone, as 2026-05-01T12:00:00.5Z",
}


def form_of(kind: LogicalType) -> str:
    """The texts that ``canonical_value`` takes."""
    if kind.kind is Kind.DECIMAL:
        assert kind.precision is not None and kind.scale is not None
        return f"a number with at most {kind.precision - kind.scale} digits before the point and {kind.scale} after it"
    return FORMS[kind.kind]


def canonical_value(text: str, kind: LogicalType) -> Canonical:
    """The canonical value that ``text`` means exactly: nothing is rounded, cut or guessed. Raises ValueError if there
    is none."""
    text.encode()
    match kind.kind:
        case Kind.TEXT:
            return text
        case Kind.BYTES:
            return b64encode(b64decode(text, validate=True)).decode("ascii")
        case Kind.FLOAT32 | Kind.FLOAT64 if text in NO_NUMBERS:
            return text
    value = cast_function(Kind.TEXT, kind)(text)
    if kind.kind in FLOATS:
        return float(text)
    if kind.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        _require_zone(text, kind.kind is Kind.TIMESTAMPTZ)
    canonical: Canonical = to_json(kind)(value)
    return canonical


def _require_zone(text: str, zone: bool) -> None:
    if (datetime.fromisoformat(text).tzinfo is not None) is not zone:
        raise ValueError
