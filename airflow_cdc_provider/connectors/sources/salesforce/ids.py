"""Record ids: 15 characters where case counts, or 18 whose last three say which of the others are capitals."""

from __future__ import annotations

import re

SUFFIX_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"

SHAPE = re.compile(r"[0-9A-Za-z]{15}([A-Z0-5]{3})?")


def is_id(text: str) -> bool:
    return SHAPE.fullmatch(text) is not None


def full_id(text: str) -> str:
    """The 18 characters of an id. Raises ValueError where it is none."""
    if not is_id(text):
        raise ValueError("not a record id")
    if len(text) == 18:
        return text
    suffix = ""
    for start in (0, 5, 10):
        capitals = sum(1 << place for place, letter in enumerate(text[start : start + 5]) if "A" <= letter <= "Z")
        suffix += SUFFIX_LETTERS[capitals]
    return text + suffix


def stands_for_many(text: str) -> bool:
    """``001*``: every record of the object whose ids begin so."""
    return text.endswith("*")
