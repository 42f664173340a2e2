"""A statement of MySQL as tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

QUOTED = r"`((?:[^`]|``)+)`|('(?:[^'\\]|''|\\.)*')|\"((?:[^\"\\]|\"\"|\\.)*)\""
QUOTED_WITHOUT_ESCAPES = r"`((?:[^`]|``)+)`|('(?:[^']|'')*')|\"((?:[^\"]|\"\")*)\""
COMMENT = r"(/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|#[^\n]*|/\*M?!\d*|\*/)"
"""Or the begin or end of a comment whose text some versions of the server execute, such as ``/*!50001 … */``: the text
counts as a part of the statement."""
WORD = r"([\w$\x80-\U0010ffff]+)"
TOKEN, TOKEN_WITHOUT_ESCAPES = (
    re.compile("|".join((quoted, COMMENT, WORD, r"(\S)")), re.DOTALL) for quoted in (QUOTED, QUOTED_WITHOUT_ESCAPES)
)


Tokens = tuple["Token", ...]


class Token(NamedTuple):
    """``word``: in upper case, or a punctuation character; empty if quoted. ``name``: empty if it cannot be an
    identifier. ``text``: as written."""

    word: str
    name: str
    text: str


def tokenize(statement: str, escapes: bool = True) -> list[Token]:
    """``escapes``: a backslash in a string escapes the next character."""
    tokens = []
    for match in (TOKEN if escapes else TOKEN_WITHOUT_ESCAPES).finditer(statement):
        quoted, single, double, comment, word, punctuation = match.groups()
        text = match.group()
        if comment is not None:
            continue
        if quoted is not None or double is not None:
            tokens.append(Token("", (quoted or double or "").replace("``", "`"), text))
        elif single is not None:
            tokens.append(Token("", "", text))
        elif word is not None:
            tokens.append(Token(word.upper(), word, text))
        else:
            tokens.append(Token(punctuation, "", text))
    return tokens


def split_at_commas(tokens: Sequence[Token]) -> tuple[Tokens, ...]:
    """Ignores commas inside parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if token.word == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(tuple(part) for part in parts if part)


def outside_parentheses(tokens: Sequence[Token]) -> Tokens:
    depth, outside = 0, []
    for token in tokens:
        depth -= token.word == ")"
        if not depth and token.word not in ("(", ")"):
            outside.append(token)
        depth += token.word == "("
    return tuple(outside)
