"""What a statement in the binlog means for the tables it names. Pure.

Row changes are told as rows. What is logged as text are the ends of transactions, definitions of tables, and changes
of sessions that log statements (``binlog_format``), which tell no rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from airflow_cdc_provider.connectors.sources.mysql.alterations import clauses_of
from airflow_cdc_provider.connectors.sources.mysql.binlog import Query
from airflow_cdc_provider.connectors.sources.mysql.tokens import Token, Tokens, tokens_of


class Means(Enum):
    """``UNDOES``: a part of the transaction. ``CHANGES``: rows that are not told. ``REPLACES``: the table is gone, or
    is another one, or has lost rows, without a word of them. ``ALTERS``: it may have other columns from here on."""

    BEGINS = auto()
    COMMITS = auto()
    ROLLS_BACK = auto()
    UNDOES = auto()
    EMPTIES = auto()
    CHANGES = auto()
    REPLACES = auto()
    ALTERS = auto()
    NOTHING = auto()


@dataclass(frozen=True)
class Statement:
    """``tables``: what it names as ``database.table``, in small letters, and perhaps names of other things too.
    ``clauses`` of one that alters, ``ignoring`` where it does so with IGNORE."""

    means: Means
    tables: frozenset[str] = frozenset()
    clauses: tuple[Tokens, ...] = ()
    ignoring: bool = False

    def of(self, ours: Collection[str]) -> list[str]:
        """Our tables among those that it is about; a database stands for all of its tables."""
        return [
            name for name in ours if name.lower() in self.tables or f"{name.lower().partition('.')[0]}.*" in self.tables
        ]


TEXT_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "DO", "SELECT", "WITH", "HANDLER"})
LOSES_ROWS = frozenset({"DROP", "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"})
HEAD_TOKENS = 12
PLAIN = {
    "BEGIN": Means.BEGINS,
    "START TRANSACTION": Means.BEGINS,
    "XA START": Means.BEGINS,
    "XA BEGIN": Means.BEGINS,
    "COMMIT": Means.COMMITS,
    "XA COMMIT": Means.COMMITS,
    "XA ROLLBACK": Means.COMMITS,
    "ROLLBACK": Means.ROLLS_BACK,
    "ROLLBACK TO": Means.UNDOES,
    "ROLLBACK WORK": Means.ROLLS_BACK,
}


def meaning(query: Query) -> Statement:
    tokens = tokens_of(query.text)
    words = [token.word for token in tokens[:HEAD_TOKENS]]
    if not words:
        return Statement(Means.NOTHING)
    known = PLAIN.get(" ".join(words[:2])) or PLAIN.get(words[0])
    if known is not None:
        return Statement(known)
    if words[0] in TEXT_CHANGES:
        return Statement(Means.CHANGES, _named(tokens, query.database))
    if words[0] == "TRUNCATE":
        return Statement(Means.EMPTIES, _named(tokens, query.database))
    if words[0] in ("DROP", "CREATE", "ALTER", "RENAME"):
        return _definition(tokens, words, query.database)
    return Statement(Means.NOTHING)


def _definition(tokens: Sequence[Token], words: list[str], database: str) -> Statement:
    if "TEMPORARY" in words[:4]:
        return Statement(Means.NOTHING)
    if words[:2] in (["DROP", "DATABASE"], ["DROP", "SCHEMA"]):
        return Statement(Means.REPLACES, frozenset({f"{tokens[-1].name.lower()}.*"}))
    if "TABLE" not in words[:4] and "TABLES" not in words[:2]:
        return Statement(Means.NOTHING)
    if words[0] == "CREATE":
        again = words[1:3] == ["OR", "REPLACE"]
        return Statement(Means.REPLACES if again else Means.NOTHING, _named(tokens, database))
    if words[0] in ("DROP", "RENAME"):
        return Statement(Means.REPLACES, _named(tokens, database))
    if _loses(tokens):
        return Statement(Means.REPLACES, _named(tokens, database))
    return Statement(Means.ALTERS, _named(tokens, database), clauses_of(tokens), "IGNORE" in words[:4])


def _loses(tokens: Sequence[Token]) -> bool:
    """Whether an ALTER TABLE takes rows away without telling them, or gives the table another name."""
    words = [token.word for token in tokens]
    if {"PARTITION", "TABLESPACE"} & set(words) and LOSES_ROWS & set(words):
        return True
    renames = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "RENAME"]
    return any(following not in ("COLUMN", "INDEX", "KEY") for following in renames)


def _named(tokens: Sequence[Token], database: str) -> frozenset[str]:
    names = set()
    for at, token in enumerate(tokens):
        if not token.name:
            continue
        if [follows.word for follows in tokens[at + 1 : at + 2]] == ["."] and tokens[at + 2 : at + 3]:
            names.add(f"{token.name}.{tokens[at + 2].name}".lower())
        names.add(f"{database}.{token.name}".lower())
    return frozenset(names)
