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
    """``word``: in capitals, or a sign; empty where it is quoted. ``name``: empty where it cannot be one. ``text``: as
    it is written."""

    word: str
    name: str
    text: str


def tokens_of(statement: str) -> list[Token]:
    found = []
    for match in TOKEN.finditer(COMMENT.sub(" ", statement)):
        quoted, single, double, word, sign = match.groups()
        text = match.group()
        if quoted is not None or double is not None:
            found.append(Token("", (quoted or double or "").replace("``", "`"), text))
        elif single is not None:
            found.append(Token("", "", text))
        elif word is not None:
            found.append(Token(word.upper(), word, text))
        else:
            found.append(Token(sign, "", text))
    return found


def split_at_commas(tokens: Sequence[Token]) -> tuple[Tokens, ...]:
    """At those outside of parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if token.word == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(tuple(part) for part in parts if part)
