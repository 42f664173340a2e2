"""Which values an ALTER TABLE may have changed without telling a row, by its text. Pure.

The binlog carries the statement, and no row of what it rewrites. A new type that is not known to keep every value
counts as one that does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from airflow_cdc_provider.connectors.sources.mysql.column_types import ColumnType, column_type, keeps_values
from airflow_cdc_provider.connectors.sources.mysql.tokens import Token, Tokens, split_at_commas, tokens_of
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

NO_COLUMN = frozenset(
    {"INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "VECTOR", "CONSTRAINT", "FOREIGN", "CHECK"}
    | {"PARTITION", "PERIOD", "SYSTEM"}
)
"""What ADD and DROP may be about beside a column."""
ABOUT_VALUES = frozenset({"ADD", "CHANGE", "MODIFY", "RENAME", "CONVERT"})
ACTIONS = (["CASCADE"], ["SET", "NULL"], ["SET", "DEFAULT"])
"""What a foreign key may do to rows, ``ON DELETE`` and ``ON UPDATE`` of others."""
BLACKHOLE = "the engine BLACKHOLE keeps no rows"
TEXTS = frozenset({Kind.TEXT, Kind.JSON})
WIDEST = "utf8mb4"


def clauses_of(tokens: Sequence[Token]) -> tuple[Tokens, ...]:
    """Of a statement ``ALTER … TABLE name …``, split at its outer commas."""
    words = [token.word for token in tokens]
    at = words.index("TABLE") + 1
    at += 2 if words[at : at + 2] == ["IF", "EXISTS"] else 0
    at += 3 if words[at + 1 : at + 2] == ["."] else 1
    return split_at_commas(tokens[at:])


def may_change(clauses: Sequence[Tokens]) -> bool:
    """Whether any of them is about values at all."""
    return any(clause[0].word in ABOUT_VALUES or _keeps_nothing(clause) for clause in clauses)


def unlogged_changes(
    clauses: Sequence[Tokens], ignoring: bool, strict: bool, held: TableSchema | None
) -> Iterator[str]:
    """What may have changed of a copy with the columns of ``held``, in words; None where the copy is being made, and
    may hold rows from before the statement and from behind it. ``ignoring``: ALTER IGNORE, which removes rows.
    ``strict``: the session refused values that do not fit."""
    if ignoring:
        yield "rows with equal keys may have been removed (ALTER IGNORE)"
    for clause in clauses:
        yield from _foreign_key(clause)
        if held is None:
            yield from _under_the_copy(clause)
        else:
            yield from _of_columns(clause, strict, held)


def _of_columns(clause: Tokens, strict: bool, held: TableSchema) -> Iterator[str]:
    words = [token.word for token in clause]
    match words[0]:
        case "ADD":
            for definition in _added_definitions(clause):
                yield from _added(definition, held)
        case "RENAME" if words[1:2] == ["COLUMN"] and len(clause) > 4:
            yield from _renamed(clause[2].name, clause[4].name, held)
        case "CHANGE":
            rest = _without_filler(clause[1:])
            yield from _renamed(rest[0].name, rest[1].name, held)
            yield from _redefined(rest[1:], strict, held)
        case "MODIFY":
            yield from _redefined(_without_filler(clause[1:]), strict, held)
        case "CONVERT" if WIDEST not in [token.name.lower() for token in clause]:
            if any(column.type.kind in TEXTS for column in held.columns):
                yield "texts were converted to another character set"
        case _ if _keeps_nothing(clause):
            yield BLACKHOLE


def _foreign_key(clause: Tokens) -> Iterator[str]:
    words = [token.word for token in clause]
    for at, word in enumerate(words):
        acts = word == "ON" and words[at + 1 : at + 2] in (["DELETE"], ["UPDATE"])
        if acts and any(words[at + 2 : at + 2 + len(action)] == action for action in ACTIONS):
            yield "a foreign key with CASCADE or SET NULL changes rows, and the binlog does not tell these changes"
            return


def _under_the_copy(clause: Tokens) -> Iterator[str]:
    match [token.word for token in clause[:2]]:
        case ["ADD", *_]:
            for definition in _added_definitions(clause):
                yield from _added(definition, TableSchema("", (), ()))
        case ["RENAME", what] if what != "COLUMN":
            return
        case ["DROP", *_] if _without_filler(clause[1:])[0].word in NO_COLUMN:
            return
        case [("CHANGE" | "MODIFY" | "RENAME" | "CONVERT" | "DROP") as word, *_]:
            yield f"the table was altered ({word} …) while it was copied"
        case _ if _keeps_nothing(clause):
            yield BLACKHOLE


def added_columns(clauses: Sequence[Tokens]) -> Iterator[str]:
    """Names of the columns that are added and not generated, in small letters."""
    for clause in clauses:
        for definition in _added_definitions(clause):
            if not _is_generated(definition):
                yield definition[0].name.lower()


def redefined_columns(clauses: Sequence[Tokens]) -> Iterator[str]:
    """Names of the columns that get another definition, in small letters."""
    for clause in clauses:
        if clause[0].word in ("MODIFY", "CHANGE"):
            yield _without_filler(clause[1:])[0].name.lower()


def _keeps_nothing(clause: Tokens) -> bool:
    return clause[0].word == "ENGINE" and "BLACKHOLE" in [token.word for token in clause]


def _added_definitions(clause: Tokens) -> list[Tokens]:
    """Of ``ADD COLUMN IF NOT EXISTS a int FIRST``, or ``ADD (a int, b int)``; none of other clauses."""
    if clause[0].word != "ADD" or len(clause) < 2 or clause[1].word in NO_COLUMN:
        return []
    clause = _without_filler(clause[1:])
    if clause[0].word != "(":
        return [clause]
    return [one for one in split_at_commas(clause[1:-1]) if one[0].word not in NO_COLUMN]


def _without_filler(clause: Tokens) -> Tokens:
    at = 1 if clause[0].word == "COLUMN" else 0
    for filler in (["IF", "NOT", "EXISTS"], ["IF", "EXISTS"]):
        if [token.word for token in clause[at : at + len(filler)]] == filler:
            return clause[at + len(filler) :]
    return clause[at:]


def _added(definition: Tokens, held: TableSchema) -> Iterator[str]:
    name, words = definition[0].name, [token.word for token in definition[1:]]
    if _held(name, held):
        yield f"column {name} was dropped and another one was added under its name"
        return
    if _is_generated(definition):
        return  # it is never copied
    null = _follows(words, "DEFAULT", "NULL") or ("DEFAULT" not in words and not _follows(words, "NOT", "NULL"))
    filled = {"AUTO_INCREMENT", "SERIAL", "PRIMARY", "KEY"} & set(words)
    implied = words[:1] == ["TIMESTAMP"] and "NULL" not in words
    if not null or filled or implied:
        yield f"rows older than column {name} hold a value that the binlog does not tell"


def _is_generated(definition: Tokens) -> bool:
    return "AS" in [token.word for token in definition[1:]]


def _follows(words: list[str], first: str, second: str) -> bool:
    return any(pair == (first, second) for pair in pairwise(words))


def _renamed(before: str, after: str, held: TableSchema) -> Iterator[str]:
    if before != after and (_held(before, held) or _held(after, held)):
        yield f"column {before} was renamed to {after}"


def _redefined(definition: Tokens, strict: bool, held: TableSchema) -> Iterator[str]:
    name, words = definition[0].name, [token.word for token in definition]
    column = _held(name, held)
    if column is None:
        if not _is_generated(definition):
            yield f"column {name} was a generated one, or is another one, and is an ordinary one now"
        return
    before, after = column_type(tokens_of(column.native)), column_type(definition[1:])
    if not keeps_values(before, after) or _other_charset(after):
        yield f"column {name} changed from {column.native} to {after.text}"
    elif not strict and (before != after or _follows(words, "NOT", "NULL")):
        yield f"column {name} was altered by a session that cuts values to what fits (sql_mode is not strict)"


def _held(name: str, held: TableSchema) -> Column | None:
    """To the server ``Name`` and ``name`` are one column."""
    return next((column for column in held.columns if column.name.lower() == name.lower()), None)


def _other_charset(after: ColumnType) -> bool:
    return after.charset not in ("", WIDEST)
