"""The schema of a table: names, columns, logical types."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from airflow_cdc_provider.core.serde import to_plain


class Kind(StrEnum):
    """Logical types, independent of any system.

    TEXT is also used for every type without an exact counterpart in a target: unconstrained numbers, arrays, ranges,
    intervals, times of day. The value is then the source's own text under fixed settings.
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
"""Kinds that cannot represent all values of a source's type: infinite times, years before 1 or after 9999, NaN."""

TEXT_OF = "_cdc_text_"
"""Name prefix of a column with the source's text of values that another column cannot represent."""


@dataclass(frozen=True)
class LogicalType:
    """``precision`` and ``scale`` (digits) are set only for DECIMAL."""

    kind: Kind
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value


DECIMAL = re.compile(r"decimal\(([1-9]\d?),(\d\d?)\)")
MAX_DIGITS = 38


def parse_type(text: str) -> LogicalType:
    """The opposite of ``str``. Raises ValueError."""
    if not (match := DECIMAL.fullmatch(text)):
        if text == Kind.DECIMAL:
            raise ValueError("precision and scale are required")
        return LogicalType(Kind(text))
    precision, scale = int(match[1]), int(match[2])
    if not scale <= precision <= MAX_DIGITS:
        raise ValueError("too many digits")
    return LogicalType(Kind.DECIMAL, precision, scale)


@dataclass(frozen=True)
class Origin:
    """The column of the source that a column of the copy is made from. ``name``: empty if the source has no such
    column. ``converted``: whether the copy has other values. ``hidden``: whether these do not reveal the source's."""

    name: str
    type: LogicalType
    native: str = ""
    converted: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class Column:
    """``native``: the type text of the source. ``initial``: the value of rows older than the column, as canonical JSON
    (an added column with a constant default); None if it is NULL. ``id``: the source's own id of the column, which it
    keeps when it is renamed; empty if the source has none. ``origin``: None if the column of the source has the same
    name and the same values."""

    name: str
    type: LogicalType
    nullable: bool = True
    native: str = ""
    initial: str | None = None
    id: str = ""
    origin: Origin | None = None

    @property
    def source_name(self) -> str:
        """Its name in the source; empty if the source does not have it."""
        return self.origin.name if self.origin else self.name

    @property
    def type_text(self) -> str:
        """As the source names it, if it does."""
        return self.native or str(self.type)

    @property
    def is_converted(self) -> bool:
        """Whether the copy has other values than the source."""
        return self.origin is not None and self.origin.converted

    @property
    def is_masked(self) -> bool:
        """Whether these do not reveal the source's."""
        return self.origin is not None and self.origin.hidden

    @property
    def text_of(self) -> str:
        """The column whose unrepresentable values this column contains as text; empty for a column of the source."""
        return self.name.removeprefix(TEXT_OF) if self.name.startswith(TEXT_OF) else ""


class Regime(StrEnum):
    """Guarantees of the stream of a keyed table. SINGLE: ordered, and at most one row has a key. DOUBLE: ordered, but
    two rows may have a key within a transaction (deferred constraints, keys from the definition). UNORDERED: records
    arrive in any order, each with all columns of its row."""

    SINGLE = "single"
    DOUBLE = "double"
    UNORDERED = "unordered"


@dataclass(frozen=True)
class TableSchema:
    """``table``: the name in the source (``schema.table``). ``key``: in key order, empty for a keyless table."""

    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    regime: Regime = Regime.SINGLE

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[dict[str, LogicalType], tuple[str, ...]]:
        """Schemas of one shape are the same to a stream: names and types of the columns, and the key."""
        return {column.name: column.type for column in self.columns}, self.key

    def column(self, name: str) -> Column:
        """Raises KeyError if there is none: a StopIteration would end the generator or the loop that it leaves."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.table} has no column {name}")

    def has_text_of(self, name: str) -> bool:
        """Whether unrepresentable values of column ``name`` are NULL, with their text in an additional column."""
        return f"{TEXT_OF}{name}" in self.names

    @cached_property
    def schema_id(self) -> str:
        """Sixteen hex digits, derived from the content only."""
        return hashlib.sha256(json.dumps(self.plain(), sort_keys=True).encode()).hexdigest()[:16]

    def plain(self) -> dict[str, Any]:
        """As ``to_plain``, without the ids and origins of columns that have none: as before there were any."""
        content: dict[str, Any] = to_plain(self)
        for column in content["columns"]:
            for name in ("id", "origin"):
                if not column[name]:
                    del column[name]
        return content
