"""A stand-in for one function: it fails at the first call and works at all later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def lost_once(real: Callable[..., Any], reply: bool, as_lost: Callable[[], Any]) -> Callable[..., Any]:
    """``reply``: the work is done and its answer lost; else nothing is done. ``as_lost`` returns the failure, or
    raises it."""
    calls: list[None] = []

    def stand_in(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) > 1:
            return real(*arguments, **named)
        if reply:
            real(*arguments, **named)
        return as_lost()

    return stand_in


def once_at(point: str, action: Callable[[], object]) -> Callable[[str], None]:
    """A failpoint that calls ``action`` when the process passes ``point`` for the first time."""
    done: list[None] = []

    def failpoint(name: str) -> None:
        if name == point and not done:
            done.append(None)
            action()

    return failpoint
