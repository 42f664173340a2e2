"""Values of columns whose declared schema names no Connect type: without it, a number may be a time, a text may be the
base64 of a decimal, and the items of an array may be either. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import times, untyped_values, values
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.connectors.decoders.debezium.semantics import CONNECT, DATA, TIME, from_native
from airflow_cdc_provider.core.table.schema import Column, Kind

TEXTS = "string"
"""The ``native`` of decimals that are sent as the texts of their numbers."""
BINARIES: Mapping[str, Converter] = {
    "bytes": values.binary,
    "base64": values.binary,
    "base64-url-safe": values.url_safe_binary,
    "hex": values.hex_binary,
}
"""By the connector's ``binary.handling.mode``."""
DECIMAL_PARTS = frozenset({"scale", "value"})


def converter(column: Column, warn: Warn, binaries: str) -> Converter:
    """``column``: one whose ``native`` is missing, or is another type than its own."""
    match column.type.kind:
        case Kind.DATE:
            return untyped_values.moment(times.date_of_text, f"int32 {TIME}Date", warn)
        case Kind.TIMESTAMP:
            return untyped_values.moment(times.timestamp_of_text, f"int64 {TIME}MicroTimestamp", warn)
        case Kind.TIMESTAMPTZ:
            return untyped_values.moment(times.timestamptz_of_text, f"string {TIME}ZonedTimestamp", warn)
        case Kind.DECIMAL:
            convert = values.converter(column.type, warn)
            return convert if column.native == TEXTS else _number_or_text(convert)
        case Kind.TEXT:
            return _texts(untyped_values.text(f"int64 {TIME}MicroTime"))
        case Kind.JSON:
            return document
        case Kind.BYTES:
            return BINARIES.get(binaries, values.binary) if from_native(column.native) is None else _not_binary
        case _:
            return values.converter(column.type, warn)


def document(value: Any) -> str:
    _require_known_items(value)
    return untyped_values.document(value)


def _texts(convert: Converter) -> Converter:
    def known(value: Any) -> str:
        _require_known_items(value)
        if isinstance(value, dict) and value.keys() == DECIMAL_PARTS and type(value["scale"]) is int:
            raise DecodeError(
                NO_SCHEMA,
                "a decimal with its scale, and its type is not in the schema of the table: declare it, "
                f"`native: struct {DATA}VariableScaleDecimal`",
            )
        return convert(value)

    return known


def _require_known_items(value: Any) -> None:
    if isinstance(value, list) and any(not isinstance(item, bool | None) for item in value):
        raise DecodeError(
            NO_SCHEMA,
            "an array whose item type is not in the schema of the table: declare it, for example "
            f"`native: array<int32 {TIME}Date>`",
        )


def _number_or_text(convert_number: Converter) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if isinstance(value, str) and (_is_base64(value) or not _is_number(value)):
            raise DecodeError(
                NO_SCHEMA,
                "a decimal as a text that may be base64, and its type is not in the schema of the table: declare it, "
                f"for example `native: bytes {CONNECT}Decimal(scale=2)`, or `native: {TEXTS}` for texts of numbers",
            )
        return convert_number(value)

    return convert


def _is_number(text: str) -> bool:
    return text in values.NON_FINITE or text.lstrip("-").replace(".", "", 1).isdecimal()


def _is_base64(text: str) -> bool:
    try:
        return bool(values.decode_base64(text))
    except DecodeError:
        return False


def _not_binary(value: Any) -> str:
    raise DecodeError(NO_SCHEMA, "a column of bytes whose `native` is another type: `bytes`, or none")
