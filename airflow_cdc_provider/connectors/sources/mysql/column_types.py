"""Column types in statements, and whether a change of type keeps every value. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.mysql_statements.tokens import Token, outside_parentheses
from airflow_cdc_provider.connectors.sources.mysql.types import SIZES

TEXTS = ("tinytext", "text", "mediumtext", "longtext")
CHARACTERS = ("char", "varchar", "enum", "set", *TEXTS)
"""Types that get the character set of the table if a definition has none."""

ATTRIBUTES = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}
"""Character sets by another name, after the type."""

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
    """``inner``: the text in parentheses. ``charset``: empty if not specified. ``text``: as messages show it."""

    name: str
    inner: tuple[str, ...] = ()
    unsigned: bool = False
    charset: str = ""
    text: str = field(default="", compare=False)


def column_type(tokens: Sequence[Token]) -> ColumnType:
    """The type at the start of ``tokens``: a column definition without its name, or a native type of the catalog."""
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
    text = f"{words[0].lower()}({','.join(inner)})" if inner else words[0].lower()
    rest = outside_parentheses(tokens[at:])
    unsigned = not {"UNSIGNED", "ZEROFILL"}.isdisjoint(token.word for token in rest)
    return ColumnType(name, _parameters(name, inner), unsigned, _charset(rest), text)


def keeps_values(before: ColumnType, after: ColumnType) -> bool:
    """Whether every value and its text remain the same."""
    if before.unsigned is not after.unsigned:
        return False
    for names in (TEXTS, BLOBS):
        if before.name in names and after.name in names:
            return names.index(before.name) <= names.index(after.name)
    if before.name in SIZES and after.name in SIZES:
        return SIZES.index(before.name) <= SIZES.index(after.name)
    if before.name != after.name:
        return False
    if before.inner == after.inner:
        return True
    if before.name in ("enum", "set"):
        return after.inner[: len(before.inner)] == before.inner
    if before.name in LENGTHS:
        return _length(before) <= _length(after)
    if before.name == "decimal":
        (precision, scale), (new_precision, new_scale) = before.inner, after.inner
        return scale == new_scale and int(precision) <= int(new_precision)
    return False


def _parameters(name: str, inner: list[str]) -> tuple[str, ...]:
    if name in SIZES:
        return ()  # the display width
    if name == "decimal":
        return tuple((*inner, "0")[:2]) if inner else ("10", "0")
    return tuple(inner) if inner or name != "char" else ("1",)


def _length(type_: ColumnType) -> int:
    return int(type_.inner[0]) if type_.inner and type_.inner[0].isdecimal() else 0


def _charset(tokens: Sequence[Token]) -> str:
    """``tokens``: after the type."""
    words = [token.word for token in tokens]
    for at, word in enumerate(words[:-1]):
        named = word == "CHARSET" or (word == "SET" and at and words[at - 1] in ("CHARACTER", "CHAR"))
        if named:
            return tokens[at + 1].text.lower()
    if words[:1] and words[0] in ATTRIBUTES:
        return ATTRIBUTES[words[0]]
    return _charset_of(tokens[words.index("COLLATE") + 1].text.lower()) if "COLLATE" in words[:-1] else ""


def _charset_of(collation: str) -> str:
    """Empty for a collation of MariaDB that many character sets have."""
    charset = collation.partition("_")[0]
    return "" if charset.startswith("uca") else charset
