"""T-SQL as SQLite runs it: an independent reading of the documented functions and conversions.

Values of types that SQLite lacks are stored as tagged texts. A query that does not convert such a value gets what a
driver returns; one that does gets the text of the documented style.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

TAG = "\x00"
TAGGED = frozenset(
    {"bit", "decimal", "numeric", "money", "smallmoney", "date", "time", "smalldatetime", "datetime", "datetime2"}
    | {"datetimeoffset", "uniqueidentifier", "xml", "hierarchyid", "geometry", "geography", "text", "ntext", "image"}
    | {"timestamp", "varchar", "char"}
)
BRACKETED = re.compile(r"\[((?:[^\]]|\]\])+)\]")
REWRITES = (
    (re.compile(r"CONVERT\((\w+(?:\([\w, ]+\))?), "), r"convert_('\1', "),
    (re.compile(r"DATEDIFF\(second, "), "datediff_("),
    (re.compile(r"DATEPART\(TZOFFSET, SYSDATETIMEOFFSET\(\)\)"), "tzoffset_()"),
    (re.compile(r"\bCURRENT_USER\b"), "current_user_()"),
    (re.compile(r"\bsys\.fn_cdc_"), "fn_cdc_"),
    (re.compile(r"\bmsdb\.dbo\."), "msdb."),
    (re.compile(r"\b0x([0-9A-F]{20})\b"), r"x'\1'"),
    (re.compile(r"\bN'"), "'"),
)
TOP = re.compile(r"^\s*SELECT TOP \((\d+)\)")


def as_sqlite(query: str) -> str:
    query = BRACKETED.sub(lambda match: quoted(match[1].replace("]]", "]")), query)
    for pattern, replacement in REWRITES:
        query = pattern.sub(replacement, query)
    if top := TOP.match(query):
        query = f"SELECT{query[top.end() :]} LIMIT {top[1]}"
    return query


def quoted(name: str) -> str:
    """A name for SQLite."""
    return '"' + name.replace('"', '""') + '"'


def stored(kind: str, value: Any) -> Any:
    """``kind``: as in a CREATE TABLE statement, such as ``datetime2(7)``. Times are texts of the server's form, with
    the digits of their type."""
    if value is None or kind.partition("(")[0] not in TAGGED:
        return value
    content = value.hex() if isinstance(value, bytes) else str(int(value)) if isinstance(value, bool) else str(value)
    return f"{TAG}{kind}:{content}"


def parted(value: Any) -> tuple[str, Any]:
    """The type and the content of a stored value."""
    if isinstance(value, str) and value.startswith(TAG):
        kind, _, content = value[1:].partition(":")
        return kind, content
    return "", value


def fetched(value: Any) -> Any:
    """What a driver returns for a stored value."""
    kind, content = parted(value)
    match kind.partition("(")[0]:
        case "bit":
            return content == "1"
        case "decimal" | "numeric" | "money" | "smallmoney":
            return Decimal(content)
        case "date":
            return date.fromisoformat(content)
        case "smalldatetime" | "datetime" | "datetime2":
            return datetime.fromisoformat(content[:26])
        case "uniqueidentifier":
            return UUID(content)
        case "image" | "timestamp" | "geometry" | "geography" | "hierarchyid":
            return bytes.fromhex(content) if kind != "hierarchyid" else content
        case "varchar" | "char" | "text":
            return content.encode("cp1252")  # a code page: the query must convert it
        case _:
            return content


def convert(target: str, value: Any, style: int = 0) -> Any:
    if value is None:
        return None
    kind, content = parted(value)
    name, new = kind.partition("(")[0], target.partition("(")[0]
    if new in ("decimal", "datetime", "int"):
        return int(value) if new == "int" else f"{TAG}{target}:{content}" if new == "decimal" else str(value)
    if new in ("binary", "varbinary"):
        return bytes.fromhex(content)
    if name in ("date", "time", "smalldatetime", "datetime", "datetime2", "datetimeoffset"):
        assert style == (23 if name == "date" else 121), f"style {style} of a {kind}"
        return content
    if name == "uniqueidentifier":
        return content.upper()
    assert name not in TAGGED or name in ("xml", "hierarchyid", "text", "ntext", "varchar", "char"), (target, kind)
    return content


def is_bit_set(position: int, mask: bytes) -> int:
    """``SUBSTRING(mask, DATALENGTH(mask) - (position - 1) / 8, 1)``, and the bit in this byte."""
    return mask[len(mask) - (position - 1) // 8 - 1] >> ((position - 1) % 8) & 1


def difference(before: str, after: str) -> int:
    return int((datetime.fromisoformat(after) - datetime.fromisoformat(before)) / timedelta(seconds=1))


def add_functions(connection: sqlite3.Connection, properties: Callable[[str], Any], now: Callable[[], str]) -> None:
    connection.create_function("convert_", -1, convert)
    connection.create_function("datediff_", 2, difference)
    connection.create_function("tzoffset_", 0, lambda: properties("offset"))
    connection.create_function("current_user_", 0, lambda: properties("user"))
    connection.create_function("GETDATE", 0, now)
    connection.create_function("DB_ID", 0, lambda: 5)
    connection.create_function("DB_NAME", 0, lambda: properties("database"))
    connection.create_function("SERVERPROPERTY", 1, properties)
    connection.create_function("COLLATIONPROPERTY", 2, lambda name, _: 936 if "Chinese" in name else 1252)
    connection.create_function("fn_cdc_is_bit_set", 2, is_bit_set)
