"""Changes of values that ``cdc.ddl_history`` reports and change tables do not contain, by the text of a statement.
Pure.

The server converts the values of a column when its type is altered, and captures none of these changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.sqlserver.types import CODE_PAGE_TEXTS

NAME = r'(\[(?:[^\]]|\]\])+\]|"(?:[^"]|"")+"|[\w@$#]+)'
ALTER_COLUMN = re.compile(
    rf"\bALTER\s+COLUMN\s+{NAME}\s+{NAME}\s*(?:\(\s*([\w\s,]*?)\s*\))?\s*(COLLATE\b)?", re.IGNORECASE
)
COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
VALUED = re.compile(r"\b(DEFAULT|IDENTITY|NOT\s+NULL|ROWGUIDCOL|PRIMARY\s+KEY)\b", re.IGNORECASE)
TYPE = re.compile(r"([a-z0-9]+)(?:\((.*)\))?")
SYNONYMS = {"integer": "int", "dec": "decimal", "numeric": "decimal", "character": "char", "rowversion": "timestamp"}
DEFAULTS = {"decimal": "18,0", "datetime2": "7", "datetimeoffset": "7", "time": "7", "float": "53"}
LENGTHS = frozenset({"varchar", "nvarchar", "varbinary"})


@dataclass(frozen=True)
class Alteration:
    """A statement of ``cdc.ddl_history``: the commit LSN, and its text."""

    lsn: int
    text: str


@dataclass(frozen=True)
class TypeChange:
    """``collated``: the statement names a collation, and so maybe another code page."""

    column: str
    type: str
    collated: bool = False


def distinct(rows: Iterable[tuple[int, int, str]]) -> dict[int, tuple[Alteration, ...]]:
    """From (object id, LSN, text): per table, in order. The history has a row for each capture instance."""
    found: dict[int, set[Alteration]] = {}
    for object_id, lsn, text in rows:
        found.setdefault(object_id, set()).add(Alteration(lsn, text))
    return {
        object_id: tuple(sorted(alterations, key=lambda one: (one.lsn, one.text)))
        for object_id, alterations in found.items()
    }


def rewritten(alteration: Alteration, natives: dict[str, str]) -> Iterator[str]:
    """Descriptions of columns whose values the statement may have changed. ``natives``: the types of the copied columns
    before it, by name; the new types are written into it."""
    known = {name.lower(): name for name in natives}
    for change in type_changes(alteration.text):
        name = known.get(change.column.lower())
        if name is None:
            continue
        before, natives[name] = natives[name], change.type
        other_code_page = change.collated and _parsed(change.type)[0] in CODE_PAGE_TEXTS
        if other_code_page or not keeps_values(before, change.type):
            yield f"column {name} changed from {before} to {change.type}{' COLLATE …' if change.collated else ''}"


def type_changes(text: str) -> Iterator[TypeChange]:
    for match in ALTER_COLUMN.finditer(_without_comments(text)):
        column, kind, parameters, collate = match.groups()
        if kind.upper() in ("ADD", "DROP"):  # ADD MASKED, DROP ROWGUIDCOL, …
            continue
        inner = f"({','.join(part.strip() for part in parameters.split(','))})" if parameters else ""
        yield TypeChange(_plain(column), f"{_plain(kind)}{inner}".lower(), collate is not None)


def keeps_values(before: str, after: str) -> bool:
    """Whether every value of the one type is kept, with the same text, by a conversion to the other."""
    (name, inner), (new_name, new_inner) = _parsed(before), _parsed(after)
    if name != new_name:
        return False
    if inner == new_inner:
        return True
    if name in LENGTHS:
        return _length(inner) <= _length(new_inner)
    if name == "decimal":
        precision, scale = _digits(inner)
        new_precision, new_scale = _digits(new_inner)
        return scale == new_scale and precision <= new_precision
    return False


def adds_null(alterations: Sequence[Alteration], column: str) -> Alteration | None:
    """The statement that added the column, if the history has exactly one that names it and older rows are NULL in
    it."""
    naming = [one for one in alterations if named_in(one, column)]
    if len(naming) != 1:
        return None
    (added,) = naming
    words = _without_comments(added.text)
    return added if re.search(r"\bADD\b", words, re.IGNORECASE) and not VALUED.search(words) else None


def named_in(alteration: Alteration, column: str) -> bool:
    name = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    return name.search(_without_comments(alteration.text)) is not None


def _without_comments(text: str) -> str:
    return COMMENT.sub(" ", text)


def _plain(name: str) -> str:
    if name.startswith("["):
        return name[1:-1].replace("]]", "]")
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _parsed(native: str) -> tuple[str, str]:
    match = TYPE.fullmatch(native.lower().replace(" ", ""))
    if match is None:
        return native.lower(), ""
    name = SYNONYMS.get(match[1], match[1])
    return name, match[2] or DEFAULTS.get(name, "")


def _length(inner: str) -> float:
    return float("inf") if inner == "max" else float(inner or 1)


def _digits(inner: str) -> tuple[int, int]:
    precision, _, scale = inner.partition(",")
    return int(precision), int(scale or 0)
