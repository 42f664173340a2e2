"""Values of columns as Python objects, and in the canonical JSON of change records. Pure."""

from __future__ import annotations

import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.core.table.schema import Kind, LogicalType

NON_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
INTEGERS = frozenset({Kind.INT16, Kind.INT32, Kind.INT64})
FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})
TEXTS = frozenset({Kind.TEXT, Kind.JSON, Kind.UUID})


def from_json(kind: Kind) -> Callable[[Any], Any]:
    """The conversion of a canonical JSON value, parsed and not null, to the object that Arrow has for it."""
    match kind:
        case Kind.FLOAT32:
            return lambda value: single_precision(float(value))
        case Kind.FLOAT64:
            return float
        case Kind.DECIMAL:
            return Decimal
        case Kind.BYTES:
            return b64decode
        case Kind.DATE:
            return date.fromisoformat
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return datetime.fromisoformat
        case _:
            return lambda value: value


def to_json(kind: LogicalType) -> Callable[[Any], Any]:
    """The opposite of ``from_json``, in the form in which every source writes the value."""
    match kind.kind:
        case Kind.FLOAT32 | Kind.FLOAT64:
            return lambda value: value if math.isfinite(value) else NON_FINITE.get(value, "NaN")
        case Kind.DECIMAL:
            return lambda value: f"{value:.{kind.scale}f}"
        case Kind.BYTES:
            return lambda value: b64encode(value).decode("ascii")
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return time_text
        case _:
            return lambda value: value


def time_text(value: date) -> str:
    """A date or time in ISO 8601, with ``Z`` if it has a time zone."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
    return value.isoformat()


def value_text(kind: Kind) -> Callable[[Any], str]:
    """The text of a value: the same for numbers, times and texts that are equal, whatever their columns' types. Floats
    are the exception: 7.0 has another text than 7."""
    match kind:
        case Kind.BOOLEAN:
            return lambda value: "true" if value else "false"
        case Kind.DECIMAL:
            return _digits
        case Kind.FLOAT32 | Kind.FLOAT64:
            return repr
        case Kind.BYTES:
            return lambda value: b64encode(value).decode("ascii")
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return time_text
        case _:
            return str


def single_precision(value: float) -> float:
    """Rounded to 32 bits."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _digits(number: Decimal) -> str:
    """Without zeros at the end of the fraction: 7 for 7.00."""
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
