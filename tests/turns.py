"""Which of the tests that take turns a run takes: those that are long, and close to others that every run takes."""

from __future__ import annotations

import os
import random
from zlib import crc32

import pytest

TURN, ALL, TURNS = "TURN", "all", 3


def choose() -> None:
    """For this run and its workers, which inherit it; ``TURN`` may say 0, 1, 2 or all."""
    os.environ[TURN] = os.environ.get(TURN) or str(random.randrange(TURNS))


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = [item for item in items if item.get_closest_marker("in_turns") and not _has_its_turn(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _has_its_turn(item: pytest.Item) -> bool:
    return os.environ[TURN] in (ALL, str(crc32(item.nodeid.encode()) % TURNS))
