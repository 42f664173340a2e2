"""Statements that rename tables and do nothing else, and the names that a table had before them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_cdc_provider.connectors.mysql_statements.alter_table import clauses_of
from airflow_cdc_provider.connectors.mysql_statements.tokens import Token, split_at_commas
from airflow_cdc_provider.core.table.source_names import table_name

Rename = tuple[str, str]
"""Old and new name, ``database.table``."""


def renames_of(tokens: Sequence[Token], database: str) -> tuple[Rename, ...]:
    """In order. Empty if the statement does anything else or cannot be read."""
    words = [token.word for token in tokens]
    if words[0] == "RENAME":
        found = [_pair(clause, database) for clause in split_at_commas(tokens[2:])]
    else:
        found = [altered_name(tokens, database) if len(clauses_of(tokens)) == 1 else None]
    return tuple(pair for pair in found if pair) if all(found) else ()


def names_of(name: str, renames: Sequence[Rename]) -> tuple[str, ...]:
    """The names, first to last, of the table that has ``name`` after these renames."""
    names = [name]
    for before, after in reversed(renames):
        if after == names[0]:
            names.insert(0, before)
    return tuple(names)


def _pair(clause: Sequence[Token], database: str) -> Rename | None:
    """``[IF EXISTS] name [WAIT n | NOWAIT] TO name``"""
    words = [token.word for token in clause]
    start = 2 if words[:2] == ["IF", "EXISTS"] else 0
    if "TO" not in words:
        return None
    to = len(words) - 1 - words[::-1].index("TO")
    end = next((at for at in (to - 2, to - 1) if words[at] in ("WAIT", "NOWAIT")), to)
    return _names(clause[start:end], clause[to + 1 :], database)


def altered_name(tokens: Sequence[Token], database: str) -> Rename | None:
    """``ALTER TABLE [IF EXISTS] name …, RENAME [TO | AS | =] name, …``"""
    words = [token.word for token in tokens]
    start = words.index("TABLE") + 1
    start += 2 if words[start : start + 2] == ["IF", "EXISTS"] else 0
    before = tokens[start : start + (3 if words[start + 1 : start + 2] == ["."] else 1)]
    for clause in clauses_of(tokens):
        if clause[0].word == "RENAME" and clause[1].word not in ("COLUMN", "INDEX", "KEY"):
            return _names(before, clause[2:] if clause[1].word in ("TO", "AS", "=") else clause[1:], database)
    return None


def _names(before: Sequence[Token], after: Sequence[Token], database: str) -> Rename | None:
    names = [_name(tokens, database) for tokens in (before, after)]
    return (names[0], names[1]) if all(names) else None


def _name(tokens: Sequence[Token], database: str) -> str:
    """Empty if the tokens are not one name."""
    match [(token.word, token.name) for token in tokens]:
        case [(_, name)] if name:
            return table_name(database, name)
        case [(_, schema), (".", _), (_, name)] if schema and name:
            return table_name(schema, name)
    return ""
