"""Whether a column keeps every value of a type, by the types that a catalog shows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database.server import ShowsTypes

TYPE = re.compile(r"([a-z ]+?)(?:\(([\d,]+)\))?( .*)?")
LENGTH = re.compile(r"\(\d+\)")
MICROSECONDS = 6
DECIMALS = frozenset({"numeric", "decimal"})

WIDER: Mapping[str, frozenset[str]] = {
    "tinyint": frozenset({"smallint", "mediumint", "int", "bigint"}),
    "smallint": frozenset({"mediumint", "int", "integer", "bigint", "numeric"}),
    "int": frozenset({"bigint"}),
    "integer": frozenset({"bigint", "numeric"}),
    "bigint": frozenset({"numeric"}),
    "real": frozenset({"double precision"}),
    "int64": frozenset({"numeric", "bignumeric"}),
    "numeric": frozenset({"bignumeric"}),
    "text": frozenset({"character varying"}),
    "varchar": frozenset({"mediumtext", "longtext"}),
    "varbinary": frozenset({"mediumblob", "longblob"}),
}
"""Types that keep all values of a type, unless they have a length."""


TEXTS = frozenset(
    ["text", "character varying", "json", "jsonb", "uuid", "tinytext", "mediumtext", "longtext", "varchar", "char"],
)
BYTES = frozenset({"tinyblob", "blob", "mediumblob", "longblob", "varbinary", "binary"})
"""Types whose values are read as they are: one that is too long for another type of them is an error."""

LISTED = ("enum(", "set(")
"""The beginnings of MySQL's types of listed texts."""

READ_AS: Mapping[str, frozenset[str]] = {
    "tinyint unsigned": frozenset({"smallint", "int", "bigint"}),
    "smallint unsigned": frozenset({"int", "bigint"}),
    "mediumint unsigned": frozenset({"int", "bigint"}),
    "mediumint": frozenset({"int", "bigint"}),
    "int unsigned": frozenset({"bigint"}),
    "timestamp": frozenset({"datetime"}),
}
"""Types that no copy has → the types that keep all their values. Our sessions read timestamps in UTC."""


@dataclass(frozen=True)
class Declared:
    """``numbers``: length, or precision and scale; empty where there is no limit of its own."""

    name: str
    numbers: tuple[int, ...]


def declared(text: str) -> Declared:
    """``text``: a type as the catalog spells it, in lower case."""
    match = TYPE.fullmatch(text)
    if match is None:
        return Declared(text, ())
    numbers = tuple(map(int, match[2].split(","))) if match[2] else ()
    return Declared(f"{match[1]}{match[3] or ''}", numbers)


def keeps_values(found: Declared, wanted: Declared) -> bool:
    if found.name != wanted.name:
        return found.name in WIDER.get(wanted.name, ()) and not found.numbers
    if not found.numbers or found.numbers == wanted.numbers:
        return True
    if not wanted.numbers:
        return found.name.startswith("timestamp") and found.numbers[0] >= MICROSECONDS
    if found.name in DECIMALS:
        (digits, scale), (least, fraction) = found.numbers, wanted.numbers
        return scale >= fraction and digits - scale >= least - fraction
    return found.numbers[0] >= wanted.numbers[0]


def shows_same_texts(found: Declared, wanted: Declared) -> bool:
    """Of types of which ``found`` keeps the values. A type without digits of its own shows those that are written."""
    if found.name in DECIMALS and found.numbers:
        return found.numbers[1:] == wanted.numbers[1:]
    return (found.name, wanted.name) != ("double precision", "real")


def other_types(
    server: ShowsTypes, types: Mapping[str, str], columns: Iterable[Column], key: Sequence[str]
) -> dict[str, str]:
    """The columns that do not keep every value, with both types. ``types``: of the table, by ``column_id``. ``key``: of
    the copy; without one its rows are compared by their texts, so these must be the same, too."""
    found = {}
    for column in columns:
        given, wanted = types.get(server.sql.column_id(column.name)), server.catalog_type(column, column.name in key)
        if given is not None and not _fits(declared(given), declared(wanted), keyless=not key):
            found[column.name] = f"column {column.name} is {given} instead of {wanted}"
    return found


def _fits(found: Declared, wanted: Declared, keyless: bool) -> bool:
    return keeps_values(found, wanted) and not (keyless and not shows_same_texts(found, wanted))


OF_COPIES: Mapping[str, str] = {"bigint unsigned": "decimal(20,0)", "bit(1)": "tinyint(1)"}
"""Types of MySQL → the types that their copies have, with all values."""


def lossy_types(
    server: ShowsTypes, types: Mapping[str, str], columns: Iterable[Column], key: Sequence[str]
) -> dict[str, str]:
    """The columns of a table that have values which a copy of it would round, with their types. ``types``: of the
    table, by ``column_id``. ``key``: of the copy."""
    found = {}
    for column in columns:
        given = types.get(server.sql.column_id(column.name))
        if given is not None and not is_kept_by(given, server.catalog_type(column, column.name in key)):
            found[column.name] = given
    return found


def is_kept_by(given: str, kind: str) -> bool:
    """Whether a column of type ``kind`` keeps all values of one of type ``given``."""
    given = given.removesuffix(" zerofill")
    given = OF_COPIES.get(given, given.removesuffix(" unsigned") if given.startswith("decimal") else given)
    found, wanted = declared(kind), declared(given)
    names = {LENGTH.sub("", kind), "text" if given.startswith(LISTED) else LENGTH.sub("", given)}
    if names <= TEXTS or names <= BYTES:
        return True
    return found.name in READ_AS.get(wanted.name, ()) or keeps_values(found, wanted)


def missing(server: ShowsTypes, types: Mapping[str, str], columns: Iterable[Column]) -> list[str]:
    return [f"column {one.name} is missing" for one in columns if server.sql.column_id(one.name) not in types]
