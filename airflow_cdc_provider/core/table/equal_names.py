"""Names that a target takes for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

I_LIKE = str.maketrans("\u0130\u0131", "ii")
"""Spark compares by single letters, of which these two have the upper or lower case of others."""


def without_case(name: str) -> str:
    """Equal for two names that Spark and the databases cannot distinguish by case."""
    return "".join(_one(letter) for letter in name.translate(I_LIKE))


def equal_without_case(names: Iterable[str]) -> list[list[str]]:
    """The groups of several names, in their order."""
    return equal_names(names, without_case)


def equal_names(names: Iterable[str], form: Callable[[str], str]) -> list[list[str]]:
    """The groups of several names with one ``form``, in their order."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[form(name)].append(name)
    return [group for group in groups.values() if len(group) > 1]


def _one(letter: str) -> str:
    upper = letter.upper()
    return (upper if len(upper) == 1 else letter).lower()
