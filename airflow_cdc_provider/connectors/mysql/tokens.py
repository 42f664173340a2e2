"""A statement of MySQL as tokens. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

COMMENT = re.compile(r"/\*(?![!M]).*?\*/|(?<!\S)--\s[^\n]*|#[^\n]*", re.DOTALL)
TOKEN = re.compile(
    r"`((?:[^`]|``)+)`|('(?:[^'\\]|''|\\.)*')|\"((?:[^\"\\]|\"\"|\\.)*)\"|([\w$\x80-\U0010ffff]+)|(\S)", re.DOTALL
)


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
