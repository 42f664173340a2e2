"""Values that an ALTER TABLE may have changed without row events, by the text of the statement. Pure.

The binlog contains the statement, and none of the rows that it rewrites. A change of type counts as a change of values
unless it is known to keep every value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from airflow_cdc_provider.connectors.mysql_statements.alter_table import (
    added_definitions,
    is_column,
    is_generated,
    without_filler,
)
from airflow_cdc_provider.connectors.mysql_statements.tokens import Tokens, outside_parentheses, tokenize
from airflow_cdc_provider.connectors.sources.mysql.column_types import CHARACTERS, column_type, keeps_values
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

VALUE_CLAUSES = frozenset({"ADD", "CHANGE", "MODIFY", "RENAME", "CONVERT"})
QUIET_CLAUSES = frozenset(
    {"ALGORITHM", "ALTER", "ANALYZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHARACTER", "CHARSET", "CHECK", "CHECKSUM"}
    | {"COALESCE", "COLLATE", "COMMENT", "COMPRESSION", "CONNECTION", "DATA", "DEFAULT", "DELAY_KEY_WRITE", "DISABLE"}
    | {"DROP", "ENABLE", "ENCRYPTION", "ENGINE", "FORCE", "INDEX", "KEY_BLOCK_SIZE"}
    | {"LOCK", "MAX_ROWS", "MIN_ROWS", "OPTIMIZE", "ORDER", "PACK_KEYS", "PARTITION", "REBUILD", "REMOVE"}
    | {"REORGANIZE", "ROW_FORMAT", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "STATS_AUTO_RECALC"}
    | {"STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "UPGRADE", "VALIDATE"}
    | {"WITH", "WITHOUT"}
)
"""First words of clauses that set no value of a column."""
ACTIONS = (["CASCADE"], ["SET", "NULL"], ["SET", "DEFAULT"])
"""Actions of a foreign key, ``ON DELETE`` and ``ON UPDATE``, that change rows."""
LOGGING_ENGINES = frozenset({"archive", "aria", "csv", "innodb", "memory", "myisam", "ndbcluster", "rocksdb", "tokudb"})
"""Engines that store rows of their own, whose changes the binlog has as rows of their table."""

VERSIONED = "earlier versions of rows are in the binlog from here on (SYSTEM VERSIONING)"
TEXTS = frozenset({Kind.TEXT, Kind.JSON})
UNICODE = "utf8mb4"
"""A conversion to this character set keeps every text."""


def may_change(clauses: Sequence[Tokens]) -> bool:
    """Whether any clause may change values or columns."""
    by_value = any(clause[0].word in VALUE_CLAUSES or _other_engine(clause) for clause in clauses)
    return by_value or drops_key(clauses) or any(_unknown_clauses(clauses))


def drops_key(clauses: Sequence[Tokens]) -> bool:
    """Whether the table has no primary key after the statement."""
    dropped = any(clause[0].word == "DROP" and _is_primary_key(clause[1:]) for clause in clauses)
    others = (clause for clause in clauses if clause[0].word != "DROP")
    return dropped and not any("PRIMARY" in [token.word for token in clause] for clause in others)


def _is_primary_key(dropped: Tokens) -> bool:
    if [token.word for token in dropped[:2]] == ["PRIMARY", "KEY"]:
        return True
    named = len(dropped) > 1 and dropped[0].word in ("INDEX", "KEY", "CONSTRAINT")
    return named and without_filler(dropped[1:])[0].name.upper() == "PRIMARY"


def unlogged_changes(
    clauses: Sequence[Tokens], ignoring: bool, strict: bool, target: TableSchema | None
) -> Iterator[str]:
    """Descriptions of the changes that a copy with the columns of ``target`` may lack. ``target`` is None during the
    first copy, which may read rows from before and after the statement. ``ignoring``: ALTER IGNORE, which removes rows.
    ``strict``: the session rejected values that do not fit."""
    if ignoring:
        yield "rows with equal keys may have been removed (ALTER IGNORE)"
    if drops_key(clauses):
        yield "the table has no primary key from here on: rows may have had equal keys"
    for clause in _unknown_clauses(clauses):
        yield f"the statement has a clause that is not known: {' '.join(token.text for token in clause[:4])}"
    for clause in clauses:
        yield from _foreign_key_changes(clause)
        if [token.word for token in clause[:3]] == ["ADD", "SYSTEM", "VERSIONING"]:
            yield VERSIONED
        if engine := _other_engine(clause):
            yield f"the engine {engine} stores no rows, or elsewhere"
        if target is None:
            yield from _changes_during_copy(clause)
        else:
            yield from _column_changes(clause, strict, target)


def _column_changes(clause: Tokens, strict: bool, target: TableSchema) -> Iterator[str]:
    words = [token.word for token in clause]
    match words[0]:
        case "ADD":
            for definition in added_definitions(clause):
                yield from _added(definition, target)
        case "RENAME" if words[1:2] == ["COLUMN"] and len(clause) > 4:
            yield from _renamed(clause[2].name, clause[4].name, target)
        case "CHANGE":
            rest = without_filler(clause[1:])
            yield from _renamed(rest[0].name, rest[1].name, target)
            yield from _redefined(rest[1:], strict, target, rest[0].name)
        case "MODIFY":
            yield from _redefined(without_filler(clause[1:]), strict, target)
        case "CONVERT" if UNICODE not in [token.name.lower() for token in clause]:
            if any(column.type.kind in TEXTS for column in target.columns):
                yield "texts were converted to another character set"


def _foreign_key_changes(clause: Tokens) -> Iterator[str]:
    words = [token.word for token in clause]
    for at, word in enumerate(words):
        has_action = word == "ON" and words[at + 1 : at + 2] in (["DELETE"], ["UPDATE"])
        if has_action and any(words[at + 2 : at + 2 + len(action)] == action for action in ACTIONS):
            yield "a foreign key with CASCADE or SET NULL changes rows, and the binlog does not contain these changes"
            return


def _changes_during_copy(clause: Tokens) -> Iterator[str]:
    match [token.word for token in clause[:2]]:
        case ["ADD", *_]:
            for definition in added_definitions(clause):
                yield from _added(definition, TableSchema("", (), ()))
        case ["RENAME", what] if what != "COLUMN":
            return
        case ["DROP", *_] if not is_column(without_filler(clause[1:])):
            return
        case [("CHANGE" | "MODIFY" | "RENAME" | "CONVERT" | "DROP") as word, *_]:
            yield f"the table was altered ({word} …) while it was copied"


def _unknown_clauses(clauses: Sequence[Tokens]) -> Iterator[Tokens]:
    """``ORDER BY a, b`` and ``REORGANIZE PARTITION p, q INTO …`` have commas of their own."""
    in_list = False
    for clause in clauses:
        if _is_known(clause):
            in_list = clause[0].word == "ORDER" or [token.word for token in clause[1:2]] == ["PARTITION"]
        elif not in_list:
            yield clause


def _is_known(clause: Tokens) -> bool:
    """Settings of the table, ``name = value``, change no row, whatever their names are."""
    return clause[0].word in VALUE_CLAUSES | QUIET_CLAUSES or [token.word for token in clause[1:2]] == ["="]


def _other_engine(clause: Tokens) -> str:
    """The engine that the clause sets, with or without other settings, if it is none of ``LOGGING_ENGINES``."""
    if clause[0].word in VALUE_CLAUSES:
        return ""
    pairs = pairwise(token for token in clause if token.word != "=")
    engines = [value.text.strip("'\"`") for setting, value in pairs if setting.word == "ENGINE"]
    return next((engine for engine in engines if engine.lower() not in LOGGING_ENGINES), "")


def _added(definition: Tokens, target: TableSchema) -> Iterator[str]:
    name, words = definition[0].name, [token.word for token in outside_parentheses(definition[1:])]
    if _column(name, target):
        yield f"column {name} was dropped and another one was added under its name"
        return
    if is_generated(definition):
        return  # it is never copied
    null = _follows(words, "DEFAULT", "NULL") or ("DEFAULT" not in words and not _follows(words, "NOT", "NULL"))
    generated = {"AUTO_INCREMENT", "SERIAL", "PRIMARY", "KEY"} & set(words)
    not_null = words[:1] == ["TIMESTAMP"] and "NULL" not in words  # without explicit_defaults_for_timestamp
    if not null or generated or not_null:
        yield f"rows older than column {name} have a value in it that the binlog does not contain"


def _follows(words: list[str], first: str, second: str) -> bool:
    return any(pair == (first, second) for pair in pairwise(words))


def _renamed(before: str, after: str, target: TableSchema) -> Iterator[str]:
    """The stream shows a copied column with a new name, unless the copy has another column of that name."""
    taken = _column(after, target)
    if taken and taken is not _column(before, target):
        yield f"column {before} was renamed to {after}"


def _redefined(definition: Tokens, strict: bool, target: TableSchema, before: str = "") -> Iterator[str]:
    """``before``: the name of the column until now, if it gets another one."""
    name, words = definition[0].name, [token.word for token in outside_parentheses(definition)]
    column = _column(before or name, target)
    if column is None:
        if not is_generated(definition):
            yield f"column {name} was a generated column or has another name in the copy; it is an ordinary column now"
        return
    if column.nullable and {"AUTO_INCREMENT", "SERIAL"} & set(words):
        yield f"column {name} counts from now on (AUTO_INCREMENT): rows with 0 or NULL in it have new numbers"
    old, new = column_type(tokenize(column.native)), column_type(definition[1:])
    if not keeps_values(old, new) or new.charset not in ("", UNICODE):
        yield f"column {name} changed from {column.native} to {new.text}"
    elif not strict and (old != new or _follows(words, "NOT", "NULL") or new.name in CHARACTERS):
        yield f"column {name} was altered by a session that truncates values (sql_mode is not strict)"


def _column(name: str, schema: TableSchema) -> Column | None:
    """The server compares column names without regard to case."""
    return next((column for column in schema.columns if column.name.lower() == name.lower()), None)
