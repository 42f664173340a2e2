"""The keys of a Delta target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeltaOptions:
    """None of its own: `location` and `catalog` are common to all targets."""
