"""Tables as every part of the provider sees them: names, columns, logical types."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from airflow_cdc_provider.core.serde import to_plain


class Kind(StrEnum):
    """What a value is, apart from how any system stores it.

    TEXT also carries every type that has no exact counterpart in a target: unconstrained numbers, arrays, ranges,
    intervals, times of day. Its value is then the source's own text under fixed settings.
    """

    BOOLEAN = "boolean"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    DECIMAL = "decimal"
    TEXT = "text"
    JSON = "json"
    UUID = "uuid"
    BYTES = "bytes"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"


LIMITED = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.DECIMAL})
"""Kinds that lack values which a source's type may have: infinite times, years before 1 or after 9999, NaN."""

TEXT_OF = "_cdc_text_"
"""How the name of a column begins that holds the source's text of what the column beside it lacks."""


@dataclass(frozen=True)
class LogicalType:
    """``precision`` and ``scale`` (digits) are set for DECIMAL only."""

    kind: Kind
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value


@dataclass(frozen=True)
class Column:
    """``native`` is the source's own type text. ``initial`` is the canonical JSON of the value that rows older than the
    column hold (an added column with a constant default); None where such rows hold NULL."""

    name: str
    type: LogicalType
    nullable: bool = True
    native: str = ""
    initial: str | None = None

    @property
    def text_of(self) -> str:
        """The column whose lacking values this one holds as text; empty for a column of the source."""
        return self.name.removeprefix(TEXT_OF) if self.name.startswith(TEXT_OF) else ""


class Regime(StrEnum):
    """What a stream of a keyed table is like. SINGLE: in order, and one row at most holds a key. DOUBLE: in order, and
    two rows may hold a key within a transaction (keys that are checked late, keys that only the definition names).
    UNORDERED: records come in any order, each with all columns of its row."""

    SINGLE = "single"
    DOUBLE = "double"
    UNORDERED = "unordered"


@dataclass(frozen=True)
class TableSchema:
    """``table`` as the source spells it (``schema.table``); ``key`` in key order, empty for a keyless table."""

    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    regime: Regime = Regime.SINGLE

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def has_text_of(self, name: str) -> bool:
        """What the column ``name`` lacks is NULL there, and stands in a column of its own."""
        return f"{TEXT_OF}{name}" in self.names

    @cached_property
    def schema_id(self) -> str:
        """Sixteen hex digits; equal schemas have equal ids on every machine."""
        return hashlib.sha256(json.dumps(to_plain(self), sort_keys=True).encode()).hexdigest()[:16]
