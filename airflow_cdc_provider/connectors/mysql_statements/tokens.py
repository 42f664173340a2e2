"""A statement of MySQL as tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

COMMENT = re.compile(r"/\*(?![!M]).*?\*/|(?<!\S)--\s[^\n]*|#[^\n]*", re.DOTALL)
TOKEN = re.compile(
    r"`((?:[^`]|``)+)`|('(?:[^'\\]|''|\\.)*')|\"((?:[^\"\\]|\"\"|\\.)*)\"|([\w$\x80-\U0010ffff]+)|(\S)", re.DOTALL
)


Tokens = tuple["Token", ...]


class Token(NamedTuple):
    """``word``: in upper case, or a punctuation character; empty if quoted. ``name``: empty if it cannot be an
    identifier. ``text``: as written."""

    word: str
    name: str
    text: str


def tokenize(statement: str) -> list[Token]:
    tokens = []
    for match in TOKEN.finditer(COMMENT.sub(" ", statement)):
        quoted, single, double, word, punctuation = match.groups()
        text = match.group()
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
