"""The clauses of an ALTER TABLE, and the columns that it adds, defines anew and renames. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.mysql_statements.tokens import (
    Token,
    Tokens,
    outside_parentheses,
    split_at_commas,
)

NOT_COLUMNS = frozenset(
    {"INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "VECTOR", "CONSTRAINT", "FOREIGN", "CHECK"}
    | {"PARTITION", "PERIOD", "SYSTEM"}
)
"""Words after ADD and DROP that introduce something other than a column."""

NAMES_TOO = {"PERIOD": ("FOR",), "SYSTEM": ("VERSIONING",), "VECTOR": ("INDEX", "KEY")}
"""Those that may also be the name of a column, and the words after them if they are none."""


def clauses_of(tokens: Sequence[Token]) -> tuple[Tokens, ...]:
    """The clauses of ``ALTER … TABLE name [WAIT n | NOWAIT] …``, which are separated by commas."""
    words = [token.word for token in tokens]
    at = words.index("TABLE") + 1
    at += 2 if words[at : at + 2] == ["IF", "EXISTS"] else 0
    at += 3 if words[at + 1 : at + 2] == ["."] else 1
    at += {"WAIT": 2, "NOWAIT": 1}.get("".join(words[at : at + 1]), 0)
    return split_at_commas(tokens[at:])


def dropped_columns(clauses: Sequence[Tokens]) -> Iterator[str]:
    for clause in clauses:
        if clause[0].word == "DROP" and len(clause) > 1 and is_column(clause[1:]):
            yield without_filler(clause[1:])[0].name


def added_columns(clauses: Sequence[Tokens]) -> Iterator[str]:
    """Names of added columns that are not generated, in lower case."""
    for clause in clauses:
        for definition in added_definitions(clause):
            if not is_generated(definition):
                yield definition[0].name.lower()


def redefined_columns(clauses: Sequence[Tokens]) -> Iterator[str]:
    """Names of the columns that get a new definition, in lower case."""
    for clause in clauses:
        if clause[0].word in ("MODIFY", "CHANGE"):
            yield without_filler(clause[1:])[0].name.lower()


def renamed_columns(clauses: Sequence[Tokens]) -> Iterator[tuple[str, str]]:
    """Old and new name of each column with another name than before."""
    for clause in clauses:
        words = [token.word for token in clause]
        if words[:2] == ["RENAME", "COLUMN"] and len(clause) > 4:
            pair = clause[2].name, clause[4].name
        elif words[0] == "CHANGE":
            first, second, *_ = without_filler(clause[1:])
            pair = first.name, second.name
        else:
            continue
        if pair[0].lower() != pair[1].lower():
            yield pair


def added_definitions(clause: Tokens) -> list[Tokens]:
    """The column definitions of ``ADD COLUMN IF NOT EXISTS a int FIRST`` or ``ADD (a int, b int)``."""
    if clause[0].word != "ADD" or len(clause) < 2 or not is_column(clause[1:]):
        return []
    clause = without_filler(clause[1:])
    if clause[0].word != "(":
        return [clause]
    return [part for part in split_at_commas(clause[1:-1]) if is_column(part)]


def is_column(tokens: Tokens) -> bool:
    """Whether the text after ADD or DROP is a column."""
    word, following = tokens[0].word, tokens[1].word if len(tokens) > 1 else ""
    return word not in NOT_COLUMNS or (word in NAMES_TOO and following not in NAMES_TOO[word])


def is_generated(definition: Tokens) -> bool:
    return "AS" in [token.word for token in outside_parentheses(definition[1:])]


def without_filler(clause: Tokens) -> Tokens:
    """Without ``COLUMN`` and ``IF [NOT] EXISTS`` before a name."""
    at = 1 if clause[0].word == "COLUMN" else 0
    for filler in (["IF", "NOT", "EXISTS"], ["IF", "EXISTS"]):
        if [token.word for token in clause[at : at + len(filler)]] == filler:
            return clause[at + len(filler) :]
    return clause[at:]
