"""Which random histories a test runs: the same in each run, unless the environment sets a seed or a larger number."""

from __future__ import annotations

import os
import secrets

SEED, HISTORIES, HISTORY, TIMES = "CDC_SEED", "CDC_HISTORIES", "CDC_HISTORY", "CDC_TIMES"
USUAL = "7"


def seed() -> str:
    return os.environ.get(SEED) or USUAL


def new() -> str:
    return str(secrets.randbits(32))


def chosen() -> bool:
    """The environment sets a seed: to search beyond the default seed, or to replay a failure."""
    return bool(os.environ.get(SEED))


def histories(usual: int) -> int:
    return int(os.environ.get(HISTORIES) or usual * times())


def times() -> int:
    """The factor by which the default numbers of histories and examples are multiplied."""
    return int(os.environ.get(TIMES) or 1)


def only() -> int | None:
    """The number of the one history to run alone."""
    alone = os.environ.get(HISTORY)
    return int(alone) if alone else None


def replayed_by(seed: str, histories: int, what: str) -> str:
    return f"again: {SEED}={seed} {HISTORIES}={histories} pytest {what}; one history alone: {HISTORY}=…"
