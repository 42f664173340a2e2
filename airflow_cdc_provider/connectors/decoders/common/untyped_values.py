"""Values of columns whose declared schema has no type of the source (``native``). Nothing is guessed: a value is kept
as a whole, or refused with the declaration that is missing. Pure.

| column | object, array | number | text | boolean |
|---|---|---|---|---|
| text | its JSON text | refused: it may be a time, a decimal, an amount of a unit | the text | its JSON text |
| json | its JSON text | its JSON text | refused unless it is JSON | its JSON text |
| date, timestamp, timestamptz | refused | refused: its unit is unknown | ISO 8601 | refused |

Other kinds have one form in JSON: ``values``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_SCHEMA,
    WRONG_TIME,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter

CHECK = Decoder(Raw).decode


def text(native: str) -> Converter:
    """``native``: an example of what a declaration may lack."""

    def convert(value: Any) -> str:
        if isinstance(value, str):
            return encode_basestring(value)
        if is_number(value):
            raise DecodeError(
                NO_SCHEMA,
                "a number in a text column, which may be a time or an amount of a unit: declare the type that the "
                f"source has, for example `native: {native}`; a plain number is declared as one and copied as text "
                "with `columns: {cast: …}`",
            )
        return encode_basestring(dumps(value))

    return convert


def document(value: Any) -> str:
    """Inlined JSON, or the text of a JSON document."""
    if isinstance(value, str) and not is_json(value):
        raise DecodeError(WRONG_VALUE, "a text that is not JSON, in a JSON column")
    return encode_basestring(value if isinstance(value, str) else dumps(value))


def moment(of_text: Callable[[str, Warn], str], native: str, warn: Warn) -> Converter:
    """A date or a time. ``native``: as in ``text``."""

    def convert(value: Any) -> str:
        if isinstance(value, str):
            return of_text(value, warn)
        if is_number(value):
            raise DecodeError(
                NO_SCHEMA,
                "a time as a number whose unit is not in the schema of the table: declare it, for example "
                f"`native: {native}`",
            )
        raise DecodeError(WRONG_TIME, "a time that is not a string")

    return convert


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_json(value: str) -> bool:
    try:
        CHECK(value)
    except (MsgspecError, RecursionError):
        return False
    return True
