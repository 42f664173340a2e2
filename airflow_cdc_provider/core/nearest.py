"""The known name somebody most likely meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name closest to ``name`` (case does not count), or an empty string where none is close."""
    by_folded = {candidate.lower(): candidate for candidate in sorted(known)}
    close = get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence for ``Problem.do``; empty where no name is close."""
    candidate = nearest(name, known)
    return f"did you mean {candidate!r}?" if candidate else ""
