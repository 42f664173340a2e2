"""Maps the columns of messages to the columns of a copy: casts to text, and texts of unrepresentable values. Pure.

The text of a value is its text in the message; for a time given as a number, it is the ISO text with all digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_KEY, DecodeError, UnrepresentableValue
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.common.times import NANOSECONDS_CUT
from airflow_cdc_provider.connectors.decoders.common.values import Converter, text
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_columns
from airflow_cdc_provider.core.table.schema import Column, LogicalType, TableSchema

NULL = "null"
TO_SECONDS, SECOND_NS = len("2024-02-29T12:34:56"), 1_000_000_000


@dataclass(frozen=True)
class ColumnMapping:
    """``column``: of the copy. ``as_in_source``: neither cast nor the text of another column."""

    column: Column
    convert: Converter
    as_in_source: bool = True


def map_columns(
    rule: TableRule | None,
    columns: Sequence[Column],
    key: Sequence[str],
    converter_of: Callable[[Column], Converter],
    warnings: list[str],
) -> list[ColumnMapping]:
    """``columns``: the copied columns of the source. ``converter_of``: returns the converter of a column, which adds
    its warnings to ``warnings``. Without a rule, all columns are mapped unchanged."""
    if rule is None:
        return [ColumnMapping(column, converter_of(column)) for column in columns]
    by_name = {column.name: column for column in columns}
    selected = selected_columns(rule, columns, key)
    have_text_column = {column.text_of for column in selected}
    mappings = []
    for column in selected:
        convert = converter_of(by_name[column.text_of or column.name])
        if column.text_of:
            mappings.append(ColumnMapping(column, _unrepresentable_text(convert), as_in_source=False))
        elif column.name in rule.columns.as_text:
            convert = _unsigned_zero(convert) if column.name in key else convert
            mappings.append(ColumnMapping(column, _as_text(convert, warnings), as_in_source=False))
        elif column.name in have_text_column:
            mappings.append(ColumnMapping(column, _or_null(convert), as_in_source=False))
        else:
            mappings.append(ColumnMapping(column, convert))
    return mappings


def mapped_images(
    settings: DecoderSettings, schema: TableSchema, mappings: Sequence[ColumnMapping], warnings: list[str]
) -> RowImages:
    """``mappings``: of the columns of ``schema``. Raises DecodeError if a key column is none of them."""
    for name in schema.key:
        if name not in schema.names:
            raise DecodeError(NO_KEY, f"the key column {name} is not a column of {schema.table}")
    converters = [mapping.convert for mapping in mappings]
    as_in_source = all(mapping.as_in_source for mapping in mappings)
    return RowImages(schema, converters, partial(settings.excludes, schema.table), warnings, as_in_source)


def source_columns(
    rule: TableRule | None, columns: Sequence[Column], source_type: Callable[[Column], LogicalType | None]
) -> list[Column]:
    """The source's columns, given the ``columns`` of a copy. ``source_type``: the type that a column's ``native``
    means, or None."""
    cast = rule.columns.as_text if rule else frozenset()
    return [
        replace(column, type=source_type(column) or column.type) if column.name in cast else column
        for column in columns
        if not column.text_of
    ]


def declared_converter(
    rule: TableRule | None,
    source_type: Callable[[Column], LogicalType | None],
    converter_of: Callable[[Column], Converter],
) -> Callable[[Column], Converter]:
    """``converter_of`` for columns of ``source_columns``: one that is cast and has no type of the source is read as the
    text in the message."""
    cast = rule.columns.as_text if rule else frozenset()
    return lambda column: text if column.name in cast and source_type(column) is None else converter_of(column)


def _unrepresentable_text(read: Converter) -> Converter:
    """The text of an unrepresentable value, NULL for others."""

    def convert(value: Any) -> str:
        try:
            read(value)
        except UnrepresentableValue as error:
            return encode_basestring(error.text)
        return NULL

    return convert


def _or_null(read: Converter) -> Converter:
    def convert(value: Any) -> str:
        try:
            return read(value)
        except UnrepresentableValue:
            return NULL

    return convert


def _as_text(read: Converter, warnings: list[str]) -> Converter:
    def convert(value: Any) -> str:
        count = len(warnings)
        try:
            text = read(value)
        except UnrepresentableValue as error:
            return encode_basestring(error.text)
        if NANOSECONDS_CUT in warnings[count:]:
            del warnings[count:]
            return encode_basestring(value if isinstance(value, str) else _with_nanoseconds(text[1:-1], value))
        return text if text.startswith('"') else encode_basestring(text)

    return convert


def _unsigned_zero(read: Converter) -> Converter:
    """0.0 and -0.0 are the same key in a source."""

    def convert(value: Any) -> str:
        text = read(value)
        return "0.0" if text == "-0.0" else text

    return convert


def _with_nanoseconds(text: str, nanoseconds: int) -> str:
    zone = "Z" if text.endswith("Z") else ""
    return f"{text[:TO_SECONDS]}.{nanoseconds % SECOND_NS:09d}{zone}"
