"""Which rows a statement writes that the binlog contains as text. Pure.

A view, a trigger or a stored function may write rows of a table that the statement does not name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_cdc_provider.connectors.mysql_statements.tokens import Token
from airflow_cdc_provider.core.table.source_names import parts_of, table_name

NOTHING = ""
MODIFIERS = frozenset({"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO"})
AFTER_DELETED = frozenset({"WHERE", "ORDER", "LIMIT", "RETURNING"})
READING = frozenset({"SELECT", "TABLE", "WITH"})
SYSTEM = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
"""Databases whose tables can have no trigger. Operators of servers write there, for instance a heartbeat."""

BUILT_IN = frozenset({"VALUES", "VALUE", "NOW", "CURRENT_TIMESTAMP", "UNIX_TIMESTAMP", "CURRENT_USER", "USER"})
"""What may have parentheses in such a statement and is no stored function."""


@dataclass(frozen=True)
class Write:
    """``table``: the table of which it writes rows by itself, as written; empty if it writes rows of no existing table,
    None if that is not known. ``names``: its identifiers, in lower case. ``reads``: it reads tables or views.
    ``calls``: it may call stored functions."""

    table: str | None
    names: frozenset[str] = frozenset()
    reads: bool = False
    calls: bool = True

    @property
    def is_confined(self) -> bool:
        """Whether it writes rows of no other table, whatever the catalog contains."""
        own = self.table is not None and (self.table == NOTHING or parts_of(self.table)[0].lower() in SYSTEM)
        return own and not self.reads and not self.calls


@dataclass(frozen=True)
class KnownObjects:
    """``plain_tables``: tables with rows of their own and without triggers. ``functions``: all stored functions, in
    lower case."""

    plain_tables: frozenset[str]
    functions: frozenset[str]

    def confine(self, write: Write) -> bool:
        """Whether the statement writes rows of no other table than ``write.table``."""
        if write.table is None or (write.table != NOTHING and write.table not in self.plain_tables):
            return False
        return not self.functions or not (write.reads or write.names & self.functions)


UNKNOWN = Write(None)


def write_of(tokens: Sequence[Token], database: str) -> Write:
    """Of a statement that changes rows."""
    words = [token.word for token in tokens]
    if words[0] == "REPAIR":
        return Write(NOTHING, calls=False)
    return _write(tokens, _written(tokens, words, database), not READING.isdisjoint(words))


def write_of_new_table(tokens: Sequence[Token]) -> Write | None:
    """Of a CREATE TABLE: one with a query calls its functions."""
    reads = "SELECT" in [token.word for token in tokens]
    return _write(tokens, NOTHING, reads) if reads else None


def _write(tokens: Sequence[Token], table: str | None, reads: bool) -> Write:
    names = frozenset(token.name.lower() for token in tokens if token.name)
    return Write(table, names, reads, _may_call(tokens, table))


def _may_call(tokens: Sequence[Token], table: str | None) -> bool:
    """The columns of the table that is written are in parentheses, too."""
    own = parts_of(table)[-1].lower() if table else ""
    called = [one for one, following in pairwise(tokens) if following.word == "(" and one.name]
    if called and called[0].name.lower() == own:
        del called[0]
    return any(one.word not in BUILT_IN for one in called)


def _written(tokens: Sequence[Token], words: list[str], database: str) -> str | None:
    """Understands statements that write rows of one table only."""
    start = next((at for at, word in enumerate(words[1:], 1) if word not in MODIFIERS), len(words))
    match words[0]:
        case "LOAD" if ("INTO", "TABLE") in pairwise(words):
            start = list(pairwise(words)).index(("INTO", "TABLE")) + 2
        case "DELETE" if words[start : start + 1] == ["FROM"]:
            start += 1
        case "INSERT" | "REPLACE" | "UPDATE":
            pass
        case _:
            return None
    end = start + (3 if words[start + 1 : start + 2] == ["."] else 1)
    following = words[end] if end < len(words) else ""
    if words[0] == "UPDATE" and following != "SET":
        return None
    if words[0] == "DELETE" and end < len(words) and following not in AFTER_DELETED:
        return None
    return _name(tokens[start:end], database)


def _name(tokens: Sequence[Token], database: str) -> str | None:
    names = [token.name for token in tokens if token.word != "."]
    if not names or not all(names):
        return None
    return table_name(database, names[0]) if len(names) == 1 else table_name(*names)
