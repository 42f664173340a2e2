"""Places in a stream, windows between them, and order keys.

An order key is fixed-width lower-case hex: eight digits of the stream's epoch, then whatever the source orders by.
Keys of one source have one length, so comparing them as text is comparing them as numbers. Layouts per source stand
in the connectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Position: TypeAlias = Mapping[str, str]
"""Channel -> native position as text. Opaque outside the connector that made it."""

EPOCH_DIGITS = 8


def epoch_prefix(epoch: int) -> str:
    return f"{epoch:0{EPOCH_DIGITS}x}"


@dataclass(frozen=True)
class Window:
    """A slice ``(lo, hi]`` of the stream; numbers run 1, 2, 3, … per replicator. 0 stands for "before the first"."""

    number: int
    epoch: int
    lo: Position
    hi: Position
