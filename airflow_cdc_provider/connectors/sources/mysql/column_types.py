"""Types of columns as statements spell them, and whether a change of one keeps every value. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.sources.mysql.tokens import Token
from airflow_cdc_provider.connectors.sources.mysql.types import SIZES

TEXTS = ("tinytext", "text", "mediumtext", "longtext")
BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
LENGTHS = ("char", "varchar", "varbinary", "time", "datetime", "timestamp")
SYNONYMS = {
    "integer": "int",
    "int1": "tinyint",
    "bool": "tinyint",
    "boolean": "tinyint",
    "int2": "smallint",
    "int3": "mediumint",
    "middleint": "mediumint",
    "int4": "int",
    "int8": "bigint",
    "dec": "decimal",
    "numeric": "decimal",
    "fixed": "decimal",
    "number": "decimal",
    "real": "double",
    "float8": "double",
    "float4": "float",
    "character": "char",
}


@dataclass(frozen=True)
class ColumnType:
    """``inner``: what stands in parentheses. ``charset``: empty where none is named."""

    name: str
    inner: tuple[str, ...] = ()
    unsigned: bool = False
    charset: str = ""
    text: str = field(default="", compare=False)


def column_type(tokens: Sequence[Token]) -> ColumnType:
    """Of a column's definition behind its name, or of what the catalogue says of its type."""
    if not tokens:
        return ColumnType("")
    words = [token.word for token in tokens]
    name = SYNONYMS.get(words[0].lower(), words[0].lower())
    at = 1
    if words[at : at + 1] in (["PRECISION"], ["VARYING"]):
        name = "varchar" if words[at] == "VARYING" else name
        at += 1
    inner: list[str] = []
    if words[at : at + 1] == ["("]:
        end = words.index(")", at) if ")" in words[at:] else len(words)
        inner = [token.text for token in tokens[at + 1 : end] if token.word != ","]
        at = end + 1
    shown = f"{words[0].lower()}({','.join(inner)})" if inner else words[0].lower()
    return ColumnType(name, _figures(name, inner), "UNSIGNED" in words[at:], _charset(tokens[at:]), shown)


def keeps_values(before: ColumnType, after: ColumnType) -> bool:
    """Whether every value is the same one, and printed alike."""
    if before.unsigned is not after.unsigned:
        return False
    for growing in (TEXTS, BLOBS):
        if before.name in growing and after.name in growing:
            return growing.index(before.name) <= growing.index(after.name)
    if before.name != after.name:
        return False
    if before.inner == after.inner:
        return True
    if before.name in ("enum", "set"):
        return after.inner[: len(before.inner)] == before.inner
    if before.name in LENGTHS:
        return _length(before) <= _length(after)
    if before.name == "decimal":
        (whole, scale), (wider, other) = before.inner, after.inner
        return scale == other and int(whole) <= int(wider)
    return False


def _figures(name: str, inner: list[str]) -> tuple[str, ...]:
    if name in SIZES:
        return ()  # how wide a client shows it
    if name == "decimal":
        return tuple((*inner, "0")[:2]) if inner else ("10", "0")
    return tuple(inner) if inner or name != "char" else ("1",)


def _length(one: ColumnType) -> int:
    return int(one.inner[0]) if one.inner and one.inner[0].isdecimal() else 0


def _charset(tokens: Sequence[Token]) -> str:
    for at, token in enumerate(tokens[:-1]):
        if token.word == "CHARSET":
            return tokens[at + 1].text.lower()
        if token.word == "SET" and at and tokens[at - 1].word == "CHARACTER" and at + 1 < len(tokens):
            return tokens[at + 1].text.lower()
    return ""
