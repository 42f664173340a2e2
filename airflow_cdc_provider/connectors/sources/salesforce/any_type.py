"""Convert values of a column by its Salesforce type. Pure.

A field of type ``anyType`` (the old and new value in the history of an object) has values of the type of another field:
REST sends a boolean, a number or a text, the Bulk API prints a text. The copy has the text of both. A number has no
exponent, and a timestamp ends in Z, whichever of both has sent it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.types import ANY_TYPE, native_type
from airflow_cdc_provider.connectors.sources.salesforce.values import (
    EXACT,
    NULL,
    Convert,
    WrongValue,
    from_json,
    from_text,
)
from airflow_cdc_provider.core.table.schema import Column

WITH_EXPONENT = re.compile(r"-?\d\.\d+E-?\d{1,3}")
TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\+0000")


def has_any_type(column: Column) -> bool:
    return native_type(column) == ANY_TYPE


def text_converter(column: Column, exact: bool = False) -> Convert:
    """From a cell of a CSV result. ``exact``: as in ``from_text``."""
    return _any_value if has_any_type(column) else from_text(column.type, exact)


def json_converter(column: Column, exact: bool = False) -> Convert:
    """From a JSON value whose real numbers were read as Decimal. ``exact``: as in ``from_json``."""
    return _any_value if has_any_type(column) else from_json(column.type, exact)


def _any_value(value: Any) -> str:
    if value is None or value == "":
        return NULL
    return encode_basestring(_text(value))


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return _plain(value)
        case str() if WITH_EXPONENT.fullmatch(value):
            return _plain(Decimal(value))
        case str():
            return TIMESTAMP.sub(r"\1Z", value) if TIMESTAMP.fullmatch(value) else value
    raise WrongValue("neither a text, a number nor a boolean")


def _plain(number: Decimal) -> str:
    """With a fraction, as Salesforce prints real numbers."""
    text = f"{number.normalize(EXACT):f}"
    return text if "." in text else f"{text}.0"
