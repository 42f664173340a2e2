"""Protobuf messages as JSON values. Pure.

A scalar field of ``proto3`` has its default value also if nothing was sent. Whether a value is null or zero can only be
distinguished if the converter marks nullable fields (``optional.for.nullables``) or wraps their values
(``wrapper.for.nullables``). Null arrays and empty arrays are never distinguished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.connect_avro import shortest_float32
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NOT_JSON,
    WRONG_NUMBER,
    WRONG_TIME,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of, number_or_text
from airflow_cdc_provider.connectors.decoders.common.times import EPOCH_DAY
from airflow_cdc_provider.core.registry import load_library

WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
ENTRY, ENTRY_FIELDS = "Entry", frozenset({"key", "value"})
"""Connect's converter writes a map as a list of messages of such a type."""
DEBEZIUM = "io.debezium."
"""The package of messages about transactions, schemas and heartbeats."""
ENVELOPE = "source"
ROWS = frozenset({"before", "after"})
NS_PER_MS = 1_000_000


class MessageValues:
    """``is_key``: fields without a mark have a value."""

    def __init__(self, descriptor: Any, is_key: bool) -> None:
        self.descriptor = descriptor
        self._unknown_fields = load_library("google.protobuf.unknown_fields", "source", "registry").UnknownFieldSet
        self._marks_nulls = is_key or any(field.has_presence for field in _scalar_fields(descriptor, set()))
        is_envelope = ENVELOPE in descriptor.fields_by_name or descriptor.full_name.startswith(DEBEZIUM)
        self._is_row = not is_key and not is_envelope

    def of(self, message: Any) -> dict[str, Any]:
        """Raises DecodeError."""
        return self._struct(message, self._is_row)

    def _struct(self, message: Any, in_row: bool) -> dict[str, Any]:
        if len(self._unknown_fields(message)):
            raise DecodeError(NOT_JSON, "Protobuf with a field that its schema does not have")
        return {
            field.name: self._field(message, field, in_row or field.name in ROWS) for field in message.DESCRIPTOR.fields
        }

    def _field(self, message: Any, field: Any, in_row: bool) -> Any:
        if field.has_presence:
            return self._single(field, getattr(message, field.name), in_row) if message.HasField(field.name) else None
        value = getattr(message, field.name)
        if not isinstance(value, bool | int | float | str | bytes):
            return self._repeated(field, value, in_row)
        if not value and not self._marks_nulls:
            raise DecodeError(
                WRONG_VALUE,
                f"{field.name} is null or zero or empty, which the message does not distinguish: set "
                "`value.converter.optional.for.nullables=true` in the connector",
            )
        return self._single(field, value, in_row)

    def _repeated(self, field: Any, values: Any, in_row: bool) -> Any:
        if not len(values) and in_row:
            raise DecodeError(
                WRONG_VALUE,
                f"{field.name} is a null or an empty array, which Protobuf does not distinguish: leave the column out "
                "in the connector, or use Avro",
            )
        if isinstance(values, Mapping):
            value_field = field.message_type.fields_by_name["value"]
            return {str(name): self._single(value_field, value, in_row) for name, value in values.items()}
        if _is_entry(field.message_type):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            return {str(self._field(one, key, in_row)): self._field(one, value, in_row) for one in values}
        return [self._single(field, value, in_row) for value in values]

    def _single(self, field: Any, value: Any, in_row: bool) -> Any:
        if field.message_type is not None:
            return self._message(field.message_type.full_name, value, in_row)
        if field.enum_type is not None:
            label = field.enum_type.values_by_number.get(value)
            if label is None:
                raise DecodeError(WRONG_VALUE, f"{field.name} has a number that its enum does not have")
            return label.name
        if isinstance(value, bytes):
            return base64_of(value)
        if isinstance(value, float):
            return shortest_float32(value) if field.type == field.TYPE_FLOAT else number_or_text(value)
        return value

    def _message(self, name: str, message: Any, in_row: bool) -> Any:
        match name:
            case "confluent.type.Decimal":
                return _decimal(message)
            case "google.type.Date":
                return _days(message)
            case "google.type.TimeOfDay":
                seconds = (message.hours * 60 + message.minutes) * 60 + message.seconds
                return _milliseconds(seconds, message.nanos)
            case "google.protobuf.Timestamp":
                return _milliseconds(message.seconds, message.nanos)
        if name in WRAPPERS:
            return self._single(message.DESCRIPTOR.fields_by_name["value"], message.value, in_row)
        return self._struct(message, in_row)


def _scalar_fields(descriptor: Any, seen: set[str]) -> Iterator[Any]:
    """Those of the message and of all messages in it, and fields with a wrapper."""
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        if field.message_type is None or field.message_type.full_name in WRAPPERS:
            yield field
        elif field.message_type.full_name not in seen:
            yield from _scalar_fields(field.message_type, seen)


def _is_entry(descriptor: Any) -> bool:
    return (
        descriptor is not None
        and descriptor.name.endswith(ENTRY)
        and {field.name for field in descriptor.fields} == ENTRY_FIELDS
    )


def _decimal(message: Any) -> Decimal:
    try:
        return Decimal(f"{int.from_bytes(message.value, 'big', signed=True)}E{-message.scale}")
    except ValueError as error:
        raise DecodeError(WRONG_NUMBER, "a decimal with too many digits") from error


def _days(message: Any) -> int:
    try:
        return date(message.year, message.month, message.day).toordinal() - EPOCH_DAY
    except ValueError as error:
        raise DecodeError(WRONG_TIME, "a date that does not exist") from error


def _milliseconds(seconds: int, nanoseconds: int) -> int:
    if nanoseconds % NS_PER_MS:
        raise DecodeError(WRONG_TIME, "a time with digits below a millisecond, which Connect's type does not have")
    return int(seconds) * 1000 + int(nanoseconds) // NS_PER_MS
