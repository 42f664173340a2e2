"""Rows of a message as canonical JSON images under one schema. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_KEY,
    NO_SCHEMA,
    WRONG_VALUE,
    DecodeError,
    NotHeld,
)
from airflow_cdc_provider.connectors.decoders.common.times import NANOSECONDS_CUT
from airflow_cdc_provider.connectors.decoders.common.values import Convert
from airflow_cdc_provider.core.table.schema import TableSchema


class RowImage(NamedTuple):
    """``complete``: all columns of the schema are in it."""

    text: str
    complete: bool


class DecodedPart(NamedTuple):
    """What is left of a row that cannot be read: see ``formats.unreadable.Understood``."""

    key: str | None
    known: dict[str, Any]
    columns: tuple[str, ...]


class RowImages:
    """``converters`` are in the order of the schema's columns. ``left_out``: names that a row may have and that are not
    copied. ``warnings`` are those of the converters since ``warned`` was asked last. ``as_told``: every column is one
    of the messages."""

    def __init__(
        self,
        schema: TableSchema,
        converters: Sequence[Convert],
        left_out: Callable[[str], bool] = lambda name: False,
        warnings: list[str] | None = None,
        as_told: bool = True,
    ) -> None:
        self.schema = schema
        self.schema_id = schema.schema_id
        self.as_told = as_told
        self.warnings = [] if warnings is None else warnings
        self._columns = [
            (
                column.text_of or column.name,
                f"{encode_basestring(column.name)}:",
                self._to_the_last_digit(convert) if column.name in schema.key else convert,
            )
            for column, convert in zip(schema.columns, converters, strict=True)
        ]
        by_name = zip(schema.names, self._columns, strict=True)
        self.converters = {name: convert for name, (_, _, convert) in by_name}
        self._names = frozenset(name for name, _, _ in self._columns)
        self._left_out = left_out

    def _to_the_last_digit(self, convert: Convert) -> Convert:
        """Of a key nothing is cut: two keys of the source would be one. 0.0 and -0.0 are one there."""

        def converted(value: Any) -> str:
            before = len(self.warnings)
            text = convert(value)
            if NANOSECONDS_CUT in self.warnings[before:]:
                raise NotHeld("a time with digits below a microsecond, in the key", "")
            return "0.0" if text == "-0.0" else text

        return converted

    def image(self, row: Mapping[str, Any]) -> RowImage:
        """Columns that are not in the row are unknown. Raises DecodeError, for a column that nobody knows, too."""
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
            self.refuse_unknown(row)
        return RowImage("{" + ",".join(members) + "}", True)

    def _partial(self, row: Mapping[str, Any]) -> RowImage:
        self.refuse_unknown(row)
        known = [
            member + (convert(row[name]) if row[name] is not None else "null")
            for name, member, convert in self._columns
            if name in row
        ]
        return RowImage("{" + ",".join(known) + "}", False)

    def key(self, row: Mapping[str, Any]) -> str | None:
        """The canonical key; None where the table has none. Raises DecodeError where the row does not tell it."""
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
            raise DecodeError(NO_KEY, f"a key of {len(values)} values; the table's has {len(self.schema.key)}")
        return dict(zip(self.schema.key, values, strict=True))

    def salvage(self, row: Mapping[str, Any]) -> DecodedPart:
        """Value by value: each is read for itself."""
        known: dict[str, str] = {}
        columns = [name for name in row if name not in self._names and not self._left_out(name)]
        for column, (name, _, convert) in zip(self.schema.names, self._columns, strict=True):
            if name in row:
                try:
                    known[column] = "null" if row[name] is None else convert(row[name])
                except DecodeError:
                    columns.append(column)
        key = [known.get(name) for name in self.schema.key]
        text = f"[{','.join(map(str, key))}]" if key and None not in key else None
        return DecodedPart(text, known, tuple(columns))

    def refuse_unknown(self, row: Mapping[str, Any]) -> None:
        unknown = [name for name in row if name not in self._names and not self._left_out(name)]
        if unknown:
            raise DecodeError(NO_SCHEMA, f"a column that the table's schema does not have ({', '.join(unknown[:3])})")

    def warned(self) -> tuple[str, ...]:
        if not self.warnings:
            return ()
        told = tuple(dict.fromkeys(self.warnings))
        self.warnings.clear()
        return told


def as_row(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(WRONG_VALUE, f"{what} is no row")
    return value
