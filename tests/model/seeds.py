"""Which histories a test plays: new ones each time, unless the environment says to play some again."""

from __future__ import annotations

import os
import secrets

SEED, HISTORIES, HISTORY = "CDC_SEED", "CDC_HISTORIES", "CDC_HISTORY"


def seed() -> str:
    return os.environ.get(SEED) or str(secrets.randbits(32))


def again() -> bool:
    """Somebody wants to see what a story came to."""
    return SEED in os.environ


def histories(usual: int) -> int:
    return int(os.environ.get(HISTORIES) or usual)


def only() -> int | None:
    """One history of them all, to be looked at alone."""
    alone = os.environ.get(HISTORY)
    return int(alone) if alone else None


def replayed_by(seed: str, histories: int, what: str) -> str:
    return f"again: {SEED}={seed} {HISTORIES}={histories} pytest {what}; one history alone: {HISTORY}=…"
