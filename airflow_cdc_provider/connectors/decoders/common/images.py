"""Rows of messages as canonical JSON images of one schema. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_KEY,
    NO_SCHEMA,
    WRONG_VALUE,
    DecodeError,
    PartialDecode,
    UnrepresentableValue,
)
from airflow_cdc_provider.connectors.decoders.common.times import NANOSECONDS_CUT
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.core.table.schema import TableSchema


class RowImage(NamedTuple):
    """``complete``: the image has all columns of the schema."""

    text: str
    complete: bool


class RowImages:
    """``converters``: in the order of the schema's columns. ``is_excluded``: whether a column of the messages is not
    copied. ``warnings``: those of the converters since the last ``take_warnings``. ``as_in_source``: no column is cast
    or holds the text of another column."""

    def __init__(
        self,
        schema: TableSchema,
        converters: Sequence[Converter],
        is_excluded: Callable[[str], bool] = lambda name: False,
        warnings: list[str] | None = None,
        as_in_source: bool = True,
    ) -> None:
        self.schema = schema
        self.schema_id = schema.schema_id
        self.as_in_source = as_in_source
        self.warnings = [] if warnings is None else warnings
        self._columns = [
            (
                column.text_of or column.name,
                f"{encode_basestring(column.name)}:",
                self._without_loss(convert) if column.name in schema.key else convert,
            )
            for column, convert in zip(schema.columns, converters, strict=True)
        ]
        by_name = zip(schema.names, self._columns, strict=True)
        self.converters = {name: convert for name, (_, _, convert) in by_name}
        self._names = frozenset(name for name, _, _ in self._columns)
        self._is_excluded = is_excluded

    def _without_loss(self, convert: Converter) -> Converter:
        """For key columns: truncation would merge distinct keys of the source. 0.0 and -0.0 are the same key."""

        def converted(value: Any) -> str:
            count = len(self.warnings)
            text = convert(value)
            if NANOSECONDS_CUT in self.warnings[count:]:
                raise UnrepresentableValue("a time with digits below a microsecond, in the key", "")
            return "0.0" if text == "-0.0" else text

        return converted

    def image(self, row: Mapping[str, Any]) -> RowImage:
        """Columns that the row lacks are unknown. Raises DecodeError, also for a column that is not in the schema."""
        if len(row) < len(self._names):
            return self._partial(row)
        members = []
        try:
            for name, member, convert in self._columns:
                value = row[name]
                members.append(member + convert(value) if value is not None else member + "null")
        except KeyError:
            return self._partial(row)
        if len(row) != len(self._names):
            self.require_known_columns(row)
        return RowImage("{" + ",".join(members) + "}", True)

    def _partial(self, row: Mapping[str, Any]) -> RowImage:
        self.require_known_columns(row)
        known = [
            member + (convert(row[name]) if row[name] is not None else "null")
            for name, member, convert in self._columns
            if name in row
        ]
        return RowImage("{" + ",".join(known) + "}", False)

    def key(self, row: Mapping[str, Any]) -> str | None:
        """The canonical key; None if the table has none. Raises DecodeError if the row lacks a key column."""
        if not self.schema.key:
            return None
        parts = []
        for name in self.schema.key:
            if name not in row:
                raise DecodeError(NO_KEY, f"the key column {name} is not in the message")
            value = row[name]
            parts.append("null" if value is None else self.converters[name](value))
        return f"[{','.join(parts)}]"

    def key_row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Values of a key in key order, by name."""
        if len(values) != len(self.schema.key):
            raise DecodeError(NO_KEY, f"a key of {len(values)} values; the key of the table has {len(self.schema.key)}")
        return dict(zip(self.schema.key, values, strict=True))

    def salvage(self, row: Mapping[str, Any], partial: PartialDecode) -> PartialDecode:
        """Adds the columns of ``row`` that can be decoded, and the names of the others. Discards warnings."""
        known: dict[str, str] = {}
        columns = [name for name in row if name not in self._names and not self._is_excluded(name)]
        for column, (name, _, convert) in zip(self.schema.names, self._columns, strict=True):
            if name in row:
                try:
                    known[column] = "null" if row[name] is None else convert(row[name])
                except DecodeError:
                    columns.append(column)
        key = [known.get(name) for name in self.schema.key]
        text = f"[{','.join(map(str, key))}]" if key and None not in key else None
        self.warnings.clear()
        values = {name: json.loads(value) for name, value in known.items()}
        return replace(partial, key=text, known=values, columns=tuple(columns), schema_id=self.schema_id)

    def require_known_columns(self, row: Mapping[str, Any]) -> None:
        unknown = [name for name in row if name not in self._names and not self._is_excluded(name)]
        if unknown:
            raise DecodeError(NO_SCHEMA, f"columns that are not in the schema of the table: {', '.join(unknown[:3])}")

    def take_warnings(self) -> tuple[str, ...]:
        """The warnings since the last call."""
        if not self.warnings:
            return ()
        warnings = tuple(dict.fromkeys(self.warnings))
        self.warnings.clear()
        return warnings


def as_row(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(WRONG_VALUE, f"{what} is not an object")
    return value
