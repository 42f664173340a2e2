"""Values that a column's type has at the source and lacks in the copy: which of them a column may meet. Pure.

(what the source's type may hold) and (what the logical type, or the target's type, lacks)
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
"""Lacked by the logical type itself, so by every target."""

MayHold = Callable[[Column], Specials]
UnsupportedBy = Callable[[Column, bool], Specials]
"""What the target's type of a column lacks that its logical type has; whether the column is part of the key."""

TIMES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})
TEXTS = frozenset({Kind.TEXT, Kind.JSON})
CAST_HELPS = IN_TYPE | {Special.NAN_FLOAT}
LENGTH = re.compile(r"\((?:length=)?(\d+)[,)]")


@dataclass(frozen=True)
class System:
    """The special values of a database's types, by what they are copied as."""

    times: Specials = NONE
    decimals: Specials = NONE
    floats: Specials = NONE
    texts: Specials = NONE


BEYOND = frozenset({Special.INFINITE_TIME, Special.OTHER_YEAR})
NAN_DECIMAL, NAN_FLOAT = frozenset({Special.NAN_DECIMAL}), frozenset({Special.NAN_FLOAT})
NO_DATE, OTHER_YEAR = frozenset({Special.NO_DATE}), frozenset({Special.OTHER_YEAR})
ZERO_CHARACTER, LONG_KEY = frozenset({Special.ZERO_CHARACTER}), frozenset({Special.LONG_KEY})

POSTGRESQL = System(BEYOND, NAN_DECIMAL, NAN_FLOAT)
MYSQL = System(NO_DATE, texts=ZERO_CHARACTER)
ORACLE = System(OTHER_YEAR, floats=NAN_FLOAT, texts=ZERO_CHARACTER)
SQL_SERVER = System(texts=ZERO_CHARACTER)
SALESFORCE = System()
FEED = System(BEYOND, NAN_DECIMAL, NAN_FLOAT, ZERO_CHARACTER)
"""Messages may come from any system; none of their formats has a zero date."""

ANY = System(BEYOND | NO_DATE, NAN_DECIMAL, NAN_FLOAT, ZERO_CHARACTER)
"""A system of which nothing is known."""

SYSTEMS: Mapping[str, System] = {
    "postgresql": POSTGRESQL,
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "oracle": ORACLE,
    "mssql": SQL_SERVER,
}
"""By the names that SQLAlchemy gives them."""


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
    """Of a text or of bytes, by the source's own type; None where that gives no limit."""
    found = LENGTH.search(column.native)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class UnsupportedValues:
    """Values that ``column`` may meet and its copy cannot hold."""

    column: str
    values: Specials
    in_key: bool


def unsupported_values(task: TableTask, source: MayHold, target: UnsupportedBy) -> tuple[UnsupportedValues, ...]:
    """Per column of the copy, in its order. What the definition has given a place is held."""
    schema = task.schema
    found = []
    for column in schema.columns:
        if column.text_of:
            continue
        in_key = column.name in schema.key
        lacked = target(column, in_key) | (NONE if schema.has_text_of(column.name) else IN_TYPE)
        if values := source(column) & lacked:
            found.append(UnsupportedValues(column.name, values, in_key))
    return tuple(found)


def unsupported_values_note(table: str, columns: Sequence[UnsupportedValues]) -> str:
    """In one line what a table may meet, where, and what the definition can say to that."""
    by_value: dict[Special, list[str]] = {}
    for one in columns:
        for value in sorted(one.values):
            by_value.setdefault(value, []).append(f"{one.column} (key)" if one.in_key else one.column)
    listed = "; ".join(f"{value} in {', '.join(names)}" for value, names in by_value.items())
    return f"{table} stops where it meets values that the copy cannot hold: {listed}. {_remedy(columns)}"


def _remedy(columns: Sequence[UnsupportedValues]) -> str:
    castable = [one for one in columns if one.values & CAST_HELPS]
    told = []
    if castable:
        cast = ", ".join(f"{one.column}: text" for one in castable)
        told.append(f"`columns: {{cast: {{{cast}}}}}` copies them as text")
    if any(one.values & IN_TYPE and not one.in_key for one in columns):
        told.append("`on_unrepresentable: set_null` makes them NULL outside the key, with their text beside them")
    if any(one.values - CAST_HELPS for one in columns):
        told.append("`on_bad_record: quarantine` puts records with such texts aside")
    return "; ".join(told)
