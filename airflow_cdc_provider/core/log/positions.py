"""Positions in a stream, and order keys.

An order key is lower-case hex of fixed width: eight digits of the stream's epoch, then the order of the source. All
keys of a source have the same length, so they compare as text as they do as numbers. The connectors define the layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Position: TypeAlias = Mapping[str, str]
"""Channel -> native position as text. Opaque outside of its connector."""

EPOCH_DIGITS = 8


def epoch_prefix(epoch: int) -> str:
    return f"{epoch:0{EPOCH_DIGITS}x}"
