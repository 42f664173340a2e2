"""Which histories a test plays: the same in each run, unless the environment names a seed or asks for more of them."""

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
    """Somebody looks for what the usual seed does not show, or wants to see what a story came to."""
    return bool(os.environ.get(SEED))


def histories(usual: int) -> int:
    return int(os.environ.get(HISTORIES) or usual * times())


def times() -> int:
    """As many times the usual number of histories and examples."""
    return int(os.environ.get(TIMES) or 1)


def only() -> int | None:
    """One history of them all, to be looked at alone."""
    alone = os.environ.get(HISTORY)
    return int(alone) if alone else None


def replayed_by(seed: str, histories: int, what: str) -> str:
    return f"again: {SEED}={seed} {HISTORIES}={histories} pytest {what}; one history alone: {HISTORY}=…"
