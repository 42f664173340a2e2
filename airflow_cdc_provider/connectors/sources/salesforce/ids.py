"""Record ids: 15 case-sensitive characters, or 18, of which the last three encode the case of the others."""

from __future__ import annotations

import re

SUFFIX_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"

PATTERN = re.compile(r"[0-9A-Za-z]{15}([A-Z0-5]{3})?")


def is_id(text: str) -> bool:
    return PATTERN.fullmatch(text) is not None


def full_id(text: str) -> str:
    """The id in 18 characters. Raises ValueError if ``text`` is no id."""
    if not is_id(text):
        raise ValueError("not a record id")
    if len(text) == 18:
        return text
    suffix = ""
    for start in (0, 5, 10):
        capitals = sum(1 << bit for bit, letter in enumerate(text[start : start + 5]) if "A" <= letter <= "Z")
        suffix += SUFFIX_LETTERS[capitals]
    return text + suffix


def is_wildcard(text: str) -> bool:
    """``001*`` stands for every record whose id has this prefix."""
    return text.endswith("*")
