"""Numbers of 32 bits where a target has only 64. Pure."""

from __future__ import annotations

import struct

from airflow_cdc_provider.core.table.schema import Kind


def as_float32(number: float) -> float:
    """The number of 32 bits that is nearest, with all digits that it has as a double."""
    (nearest,) = struct.unpack("f", struct.pack("f", number))
    return float(nearest)


def as_stored(canonical: object, kind: Kind) -> object:
    """The canonical value of a column, as such a target stores it."""
    if kind is Kind.FLOAT32 and isinstance(canonical, (int, float)):
        return as_float32(canonical)
    return canonical
