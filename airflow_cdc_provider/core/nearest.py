"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name closest to ``name``, ignoring case; an empty string if none is close."""
    by_lower_case = {candidate.lower(): candidate for candidate in sorted(known)}
    close = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence for ``Problem.do``; empty if no name is close."""
    candidate = nearest(name, known)
    return f"did you mean {candidate!r}?" if candidate else ""


def abbreviated(names: Iterable[str], limit: int = 20) -> str:
    """A list for a message, cut after ``limit`` entries."""
    ordered = list(dict.fromkeys(names))
    return ", ".join(ordered[:limit]) + (f" and {len(ordered) - limit} more" if len(ordered) > limit else "")
