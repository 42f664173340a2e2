"""Special values that a column's type has at the source, but not in the copy. Pure.

unsupported values = (values of the source's type) ∩ (values missing in the logical type or the target's type)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.schema import Column, Kind


class Special(StrEnum):
    INFINITE_TIME = "infinite times"
    OTHER_YEAR = "years before 1 or after 9999"
    NO_DATE = "zero dates and days that no month has"
    NAN_DECIMAL = "NaN"
    NAN_FLOAT = "NaN and infinite numbers"
    ZERO_CHARACTER = "texts with a zero character"
    LONG_KEY = "keys longer than the index takes"


Specials = frozenset[Special]
NONE: Specials = frozenset()
IN_TYPE = frozenset({Special.INFINITE_TIME, Special.OTHER_YEAR, Special.NO_DATE, Special.NAN_DECIMAL})
"""Not representable by the logical type, so by no target."""

MayHold = Callable[[Column], Specials]
UnsupportedBy = Callable[[Column, bool], Specials]
"""Values of a column's logical type that the target's type does not have. Arguments: the column, and whether it belongs
to the key."""

TIMES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})
TEXTS = frozenset({Kind.TEXT, Kind.JSON})
CASTABLE = IN_TYPE | {Special.NAN_FLOAT}
LENGTH = re.compile(r"\((?:length=)?(\d+)[,)]")


@dataclass(frozen=True)
class System:
    """The special values of a system's types, by kind of the copied column."""

    times: Specials = NONE
    decimals: Specials = NONE
    floats: Specials = NONE
    texts: Specials = NONE


OUT_OF_RANGE = frozenset({Special.INFINITE_TIME, Special.OTHER_YEAR})
NAN_DECIMAL, NAN_FLOAT = frozenset({Special.NAN_DECIMAL}), frozenset({Special.NAN_FLOAT})
NO_DATE, OTHER_YEAR = frozenset({Special.NO_DATE}), frozenset({Special.OTHER_YEAR})
ZERO_CHARACTER, LONG_KEY = frozenset({Special.ZERO_CHARACTER}), frozenset({Special.LONG_KEY})

POSTGRESQL = System(OUT_OF_RANGE, NAN_DECIMAL, NAN_FLOAT)
MYSQL = System(NO_DATE, texts=ZERO_CHARACTER)
ORACLE = System(OTHER_YEAR, floats=NAN_FLOAT, texts=ZERO_CHARACTER)
SQL_SERVER = System(texts=ZERO_CHARACTER)
SALESFORCE = System()
FEED = System(OUT_OF_RANGE, NAN_DECIMAL, NAN_FLOAT, ZERO_CHARACTER)
"""Messages may originate from any system; no message format has zero dates."""

ANY = System(OUT_OF_RANGE | NO_DATE, NAN_DECIMAL, NAN_FLOAT, ZERO_CHARACTER)
"""An unknown system."""

SYSTEMS: Mapping[str, System] = {
    "postgresql": POSTGRESQL,
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "oracle": ORACLE,
    "mssql": SQL_SERVER,
}
"""By SQLAlchemy's dialect names."""


def may_hold(column: Column, system: System) -> Specials:
    kind = column.type.kind
    long = LONG_KEY if kind in TEXTS or kind is Kind.BYTES else NONE
    if kind in TIMES:
        return system.times
    if kind is Kind.DECIMAL:
        return system.decimals
    if kind in FLOATS:
        return system.floats
    return long | system.texts if kind in TEXTS else long


def declared_length(column: Column) -> int | None:
    """Of a text or binary column, from the source's type; None if that has no limit."""
    match = LENGTH.search(column.native)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class UnsupportedValues:
    """Values that ``column`` may contain and its copy cannot."""

    column: str
    values: Specials
    in_key: bool


def unsupported_values(task: TableTask, source: MayHold, target: UnsupportedBy) -> tuple[UnsupportedValues, ...]:
    """Per column of the copy, in its order. Values for which the definition adds a text column are supported."""
    schema = task.schema
    unsupported = []
    for column in schema.columns:
        if column.text_of:
            continue
        in_key = column.name in schema.key
        missing = target(column, in_key) | (NONE if schema.has_text_of(column.name) else IN_TYPE)
        if values := source(column) & missing:
            unsupported.append(UnsupportedValues(column.name, values, in_key))
    return tuple(unsupported)


def unsupported_values_note(table: str, columns: Sequence[UnsupportedValues]) -> str:
    """One line with the values, their columns, and the settings of the definition that support them."""
    values = unsupported_values_text(columns)
    return f"{table} stops at values that the copy cannot hold: {values}. {unsupported_values_remedy(columns)}"


def unsupported_values_text(columns: Sequence[UnsupportedValues]) -> str:
    """The values with their columns: ``NaN in price; infinite times in since, until``."""
    by_value: dict[Special, list[str]] = {}
    for entry in columns:
        for value in sorted(entry.values):
            by_value.setdefault(value, []).append(f"{entry.column} (key)" if entry.in_key else entry.column)
    return "; ".join(f"{value} in {', '.join(names)}" for value, names in by_value.items())


def unsupported_values_remedy(columns: Sequence[UnsupportedValues]) -> str:
    """The settings of the definition that support these values."""
    castable = [entry for entry in columns if entry.values & CASTABLE]
    remedies = []
    if castable:
        cast = ", ".join(f"{entry.column}: text" for entry in castable)
        remedies.append(f"`columns: {{cast: {{{cast}}}}}` copies them as text")
    if any(entry.values & IN_TYPE and not entry.in_key for entry in columns):
        remedies.append("`on_unrepresentable: set_null` writes NULL outside the key, and their text to another column")
    if any(entry.values - CASTABLE for entry in columns):
        remedies.append("`on_bad_record: quarantine` moves records with such texts to quarantine")
    return "; ".join(remedies)
