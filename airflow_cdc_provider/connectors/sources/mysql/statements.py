"""The effect of a statement in the binlog on the tables it names. Pure.

The binlog contains row changes as rows. It contains as text: starts and ends of transactions, DDL, and the DML of
sessions that log statements (``binlog_format``), without its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from airflow_cdc_provider.connectors.mysql_statements.alter_table import clauses_of
from airflow_cdc_provider.connectors.mysql_statements.table_renames import Rename, renames_of
from airflow_cdc_provider.connectors.mysql_statements.tokens import Token, Tokens, tokenize
from airflow_cdc_provider.connectors.sources.mysql.alterations import drops_key
from airflow_cdc_provider.connectors.sources.mysql.binlog import Query
from airflow_cdc_provider.connectors.sources.mysql.writes import Write, write_of, write_of_new_table
from airflow_cdc_provider.core.table.source_names import in_lower_case, parts_of, table_name


class Effect(Enum):
    """``CHANGE_ROWS``: rows that are not logged. ``REPLACE_TABLE``: the table is dropped, replaced or renamed, or loses
    rows that are not logged. ``ALTER``: its columns may differ from here on. ``DEFINE``: a view, a trigger or a stored
    function differs from here on."""

    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    ROLLBACK_TO_SAVEPOINT = auto()
    TRUNCATE = auto()
    CHANGE_ROWS = auto()
    REPLACE_TABLE = auto()
    ALTER = auto()
    DEFINE = auto()
    NONE = auto()


@dataclass(frozen=True)
class Statement:
    """``tables``: its identifiers as ``database.table`` in lower case; some may not be tables; a database alone means
    all its tables. ``clauses``: of an ALTER TABLE. ``ignoring``: it is an ALTER IGNORE TABLE. ``renames``: of tables,
    with the names as written, in order; a statement that does more than that has none. ``write``: of one that writes
    rows, of which the binlog has the text only."""

    effect: Effect
    tables: frozenset[str] = frozenset()
    clauses: tuple[Tokens, ...] = ()
    ignoring: bool = False
    renames: tuple[Rename, ...] = ()
    write: Write | None = None

    def affected(self, tables: Collection[str]) -> list[str]:
        """Those of ``tables`` that it affects; DROP DATABASE affects all tables of the database."""
        return [name for name in tables if {in_lower_case(name), _database(name)} & self.tables]


ROW_LOSSES = frozenset({"DROP", "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT", "REPAIR"})
QUIET = frozenset(
    {"ANALYZE", "BINLOG", "CACHE", "CHANGE", "CHECK", "CLONE", "FLUSH", "GRANT", "INSTALL", "KILL", "LOCK", "OPTIMIZE"}
    | {"PURGE", "RELEASE", "RESET", "REVOKE", "SAVEPOINT", "SET", "SHOW", "SHUTDOWN", "START", "STOP", "UNINSTALL"}
    | {"UNLOCK", "USE", "XA"}
)
"""Statements that change no row of a table by themselves. Any other one may."""
DEFINED = frozenset({"VIEW", "TRIGGER", "FUNCTION", "PACKAGE"})
HEAD_TOKENS = 12
TRANSACTION_STATEMENTS = {
    "BEGIN": Effect.BEGIN,
    "START TRANSACTION": Effect.BEGIN,
    "XA START": Effect.BEGIN,
    "XA BEGIN": Effect.BEGIN,
    "COMMIT": Effect.COMMIT,
    "XA COMMIT": Effect.COMMIT,
    "XA ROLLBACK": Effect.COMMIT,
    "ROLLBACK": Effect.ROLLBACK,
    "ROLLBACK TO": Effect.ROLLBACK_TO_SAVEPOINT,
    "ROLLBACK WORK": Effect.ROLLBACK,
}


def parse_statement(query: Query) -> Statement:
    tokens = _without_analysis(_without_settings(tokenize(query.text, query.escapes)))
    words = [token.word for token in tokens[:HEAD_TOKENS]]
    if not words:
        return Statement(Effect.NONE)
    effect = TRANSACTION_STATEMENTS.get(" ".join(words[:2])) or TRANSACTION_STATEMENTS.get(words[0])
    if effect is not None:
        return Statement(effect)
    if words[0] in QUIET:
        return Statement(Effect.NONE)
    if words[0] == "TRUNCATE":
        return Statement(Effect.TRUNCATE, _identifiers(tokens, query.database))
    if words[0] in ("DROP", "CREATE", "ALTER", "RENAME"):
        return _parse_ddl(tokens, words, query.database)
    write = write_of(tokens, query.database)
    return Statement(Effect.CHANGE_ROWS, _identifiers(tokens, query.database), write=write)


def _without_settings(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the first part of MariaDB's ``SET STATEMENT name = value, … FOR statement``."""
    words = [token.word for token in tokens]
    return tokens[words.index("FOR") + 1 :] if words[:2] == ["SET", "STATEMENT"] and "FOR" in words else tokens


def _without_analysis(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the first words of MariaDB's ``ANALYZE [FORMAT = JSON] statement``, which executes the statement."""
    words = [token.word for token in tokens[:5]]
    if words[:1] != ["ANALYZE"] or words[1:2] in (["TABLE"], ["TABLES"], ["LOCAL"], ["NO_WRITE_TO_BINLOG"]):
        return tokens
    return tokens[4 if words[1:3] == ["FORMAT", "="] else 1 :]


def _parse_ddl(tokens: Sequence[Token], words: list[str], database: str) -> Statement:
    if words[1:2] == ["TEMPORARY"] or words[1:4] == ["OR", "REPLACE", "TEMPORARY"]:
        return Statement(Effect.NONE, write=write_of_new_table(tokens))
    if words[:2] in (["DROP", "DATABASE"], ["DROP", "SCHEMA"]):
        return Statement(Effect.REPLACE_TABLE, frozenset({table_name(tokens[-1].name.lower())}))
    if words[:2] == ["DROP", "INDEX"] and "ON" in words:
        dropped = (tuple(tokens[: words.index("ON")]),)
        if drops_key(dropped):
            return Statement(Effect.ALTER, _identifiers(tokens, database), dropped)
    if "TABLE" not in words[:4] and "TABLES" not in words[:2]:
        return Statement(Effect.DEFINE if DEFINED & {token.word for token in tokens} else Effect.NONE)
    if words[0] == "CREATE":
        effect = Effect.REPLACE_TABLE if words[1:3] == ["OR", "REPLACE"] else Effect.NONE
        return Statement(effect, _identifiers(tokens, database), write=write_of_new_table(tokens))
    if words[0] == "DROP":
        return Statement(Effect.REPLACE_TABLE, _identifiers(tokens, database))
    if words[0] == "RENAME" or _loses_rows(tokens):
        renames = renames_of(tokens, database)
        return Statement(Effect.REPLACE_TABLE, _identifiers(tokens, database), renames=renames)
    return Statement(Effect.ALTER, _identifiers(tokens, database), clauses_of(tokens), "IGNORE" in words[:4])


def _loses_rows(tokens: Sequence[Token]) -> bool:
    """Whether an ALTER TABLE removes rows without logging them, or renames the table."""
    words = [token.word for token in tokens]
    heads = [[token.word for token in clause[:2]] for clause in clauses_of(tokens)]
    if ["CONVERT", "PARTITION"] in heads or ["CONVERT", "TABLE"] in heads:
        return True
    if {"PARTITION", "TABLESPACE"} & set(words) and ROW_LOSSES & set(words):
        return True
    renamed = [after for word, after in pairwise(words) if word == "RENAME"]
    return any(what not in ("COLUMN", "INDEX", "KEY") for what in renamed)


def _database(table: str) -> str:
    return table_name(parts_of(table)[0].lower())


def _identifiers(tokens: Sequence[Token], database: str) -> frozenset[str]:
    names = set()
    for at, token in enumerate(tokens):
        if not token.name:
            continue
        if [following.word for following in tokens[at + 1 : at + 2]] == ["."] and tokens[at + 2 : at + 3]:
            names.add(table_name(token.name.lower(), tokens[at + 2].name.lower()))
        names.add(table_name(database.lower(), token.name.lower()))
    return frozenset(names)
