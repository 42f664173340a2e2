"""The conversion of written values to stored ones: text, bool, int, float, None; timestamps and dates as ISO text.

Timestamps have whole seconds and end in ``.000Z``, so their order as text is their order in time.
"""

from __future__ import annotations

import datetime
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds, stamp
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.ids import full

NUMBERS = ("double", "currency", "percent")


def stored(field: Field, value: Any) -> Any:
    """Raises ApiError (400) if the value is invalid. Blank text becomes null."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return False if field.kind == "boolean" else None
    try:
        return _typed(field, value)
    except (ValueError, TypeError) as error:
        message = f"{field.name}: value not of required type: {value}"
        raise ApiError(400, "INVALID_TYPE_ON_FIELD_IN_RECORD", message, [field.name]) from error


def _typed(field: Field, value: Any) -> Any:
    kind = field.kind
    if kind == "boolean":
        if value in (True, "true", "True", "1"):
            return True
        if value in (False, "false", "False", "0"):
            return False
        raise ValueError(value)
    if kind == "int":
        return int(value)
    if kind in NUMBERS:
        return _number(field, value)
    if kind == "date":
        return datetime.date.fromisoformat(str(value)[:10]).isoformat()
    if kind == "datetime":
        return stamp(milliseconds(str(value)))
    if kind == "time":
        return datetime.time.fromisoformat(str(value)).replace(tzinfo=None).isoformat("milliseconds") + "Z"
    if kind in ("reference", "id"):
        return full(str(value))
    if kind == "anyType" and isinstance(value, bool | int | float):
        return value
    if not isinstance(value, str):
        raise TypeError(value)
    return value if kind == "base64" else _text(field, value)


def _number(field: Field, value: Any) -> float:
    number = round(float(value), field.scale)
    if abs(number) >= 10.0 ** (field.precision - field.scale):
        message = f"{field.name}: value outside of valid range on numeric field: {value}"
        raise ApiError(400, "NUMBER_OUTSIDE_VALID_RANGE", message, [field.name])
    return number + 0.0


def _text(field: Field, value: str) -> str:
    value = value.strip()
    if field.length and len(value) > field.length:
        message = f"{field.name}: data value too large: {value[:40]} (max length={field.length})"
        raise ApiError(400, "STRING_TOO_LONG", message, [field.name])
    return value
