"""The names of source tables as texts: in the YAML, the change log, the state, messages and commands. Pure.

A name has parts: schema and table, or database, schema and table, or one part. The text joins them with dots. A part
that would be taken for several, or for the name of a copy, is in double quotes, and a double quote in it is written
twice: ``a."b.c"``, ``"a.b".c``. So a text means one name, and most texts have no quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from shlex import quote

from airflow_cdc_provider.core.table.copies import source_table

PART = re.compile(r'"((?:[^"]|"")*)"(?=\.|\Z)|([^.]*)')


@lru_cache(maxsize=10_000)
def table_name(*parts: str) -> str:
    """Raises TypeError if a part is no text."""
    *others, last = parts
    text = ".".join(map(_part, parts))
    return text if source_table(text) == text else ".".join((*map(_part, others), _quoted(last)))


@lru_cache(maxsize=10_000)
def parts_of(name: str) -> tuple[str, ...]:
    """Every text has parts, also one that ``table_name`` does not write."""
    parts, at = [], 0
    while at <= len(name):
        match = PART.match(name, at)
        assert match is not None
        quoted, plain = match.groups()
        parts.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end() + 1
    return tuple(parts)


def schema_and_table(names: Iterable[str]) -> list[tuple[str, str]]:
    """The parts of the names that have these two. Others are no tables of a system whose tables have them."""
    return [(parts[0], parts[1]) for parts in map(parts_of, names) if len(parts) == 2]


def without_quotes(name: str) -> str:
    """Several names may have this text."""
    return ".".join(parts_of(name))


def in_lower_case(name: str) -> str:
    return table_name(*(part.lower() for part in parts_of(name)))


def _part(text: str) -> str:
    return _quoted(text) if "." in text or text.startswith('"') else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def in_shell(name: str) -> str:
    """An argument of a command; of a copy, too."""
    return quote(name)
