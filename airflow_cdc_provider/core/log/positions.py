"""Places in a stream, and order keys.

An order key is fixed-width lower-case hex: eight digits of the stream's epoch, then whatever the source orders by.
Keys of one source have one length, so comparing them as text is comparing them as numbers. Layouts per source stand
in the connectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Position: TypeAlias = Mapping[str, str]
"""Channel -> native position as text. Opaque outside the connector that made it."""

EPOCH_DIGITS = 8


def epoch_prefix(epoch: int) -> str:
    return f"{epoch:0{EPOCH_DIGITS}x}"
