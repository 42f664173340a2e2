"""Numbers of 32 bits where a target has only 64. Pure."""

from __future__ import annotations

import struct


def as_float32(number: float) -> float:
    """The number of 32 bits that is nearest, with all digits that it has as a double."""
    (nearest,) = struct.unpack("f", struct.pack("f", number))
    return float(nearest)
