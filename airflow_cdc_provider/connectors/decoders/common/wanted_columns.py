"""What the definition makes of the columns that messages tell: texts of some, and texts beside others. Pure.

A text is what stands in the message; of a time that is told as a number it is the ISO text, with all digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NotHeld
from airflow_cdc_provider.connectors.decoders.common.times import NANOSECONDS_CUT
from airflow_cdc_provider.connectors.decoders.common.values import Convert
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selection import selected_columns
from airflow_cdc_provider.core.table.schema import Column, LogicalType

NULL = "null"
TO_SECONDS, SECOND_NS = len("2024-02-29T12:34:56"), 1_000_000_000


@dataclass(frozen=True)
class ColumnReading:
    """How a column of the copy is read. ``as_told``: as the source's own column is."""

    column: Column
    convert: Convert
    as_told: bool = True


def readings(
    rule: TableRule | None,
    columns: Sequence[Column],
    key: Sequence[str],
    convert: Callable[[Column], Convert],
    warnings: list[str],
) -> list[ColumnReading]:
    """``columns``: those of the source that are copied; ``convert`` reads one of them and warns into ``warnings``.
    Without a rule they are read as they are."""
    if rule is None:
        return [ColumnReading(column, convert(column)) for column in columns]
    own = {column.name: column for column in columns}
    wanted = selected_columns(rule, columns, key)
    apart = {column.text_of for column in wanted}
    found = []
    for column in wanted:
        read = convert(own[column.text_of or column.name])
        if column.text_of:
            found.append(ColumnReading(column, _lacking(read), as_told=False))
        elif column.name in rule.columns.cast:
            read = _unsigned_zero(read) if column.name in key else read
            found.append(ColumnReading(column, _spelled(read, warnings), as_told=False))
        elif column.name in apart:
            found.append(ColumnReading(column, _or_null(read), as_told=False))
        else:
            found.append(ColumnReading(column, read))
    return found


def as_described(
    rule: TableRule | None, columns: Sequence[Column], original: Callable[[Column], LogicalType | None]
) -> list[Column]:
    """The source's own columns behind those of a copy. ``original``: the type that the source's words for a column
    mean; None where they say nothing, then a column that is cast is read as the text that stands in the message."""
    cast = rule.columns.cast if rule else {}
    own = [column for column in columns if not column.text_of]
    return [replace(one, type=original(one) or one.type) if one.name in cast else one for one in own]


def _lacking(read: Convert) -> Convert:
    def convert(value: Any) -> str:
        try:
            read(value)
        except NotHeld as error:
            return encode_basestring(error.text)
        return NULL

    return convert


def _or_null(read: Convert) -> Convert:
    def convert(value: Any) -> str:
        try:
            return read(value)
        except NotHeld:
            return NULL

    return convert


def _spelled(read: Convert, warnings: list[str]) -> Convert:
    def convert(value: Any) -> str:
        before = len(warnings)
        try:
            text = read(value)
        except NotHeld as error:
            return encode_basestring(error.text)
        if NANOSECONDS_CUT in warnings[before:]:
            del warnings[before:]
            return encode_basestring(value if isinstance(value, str) else _to_the_last_digit(text[1:-1], value))
        return text if text.startswith('"') else encode_basestring(text)

    return convert


def _unsigned_zero(read: Convert) -> Convert:
    """To a source 0.0 and -0.0 are one key."""

    def convert(value: Any) -> str:
        text = read(value)
        return "0.0" if text == "-0.0" else text

    return convert


def _to_the_last_digit(text: str, nanoseconds: int) -> str:
    zone = "Z" if text.endswith("Z") else ""
    return f"{text[:TO_SECONDS]}.{nanoseconds % SECOND_NS:09d}{zone}"
