"""When the upkeep of a table is checked."""

from __future__ import annotations

import zlib

WINDOWS = 10
"""A check takes a moment, and a few merges add little."""


def is_due(table: str, before: int, after: int) -> bool:
    """Once in ten windows of the change log, at the table's next merge, however many of them changed it. The tables of
    a replicator take different turns. ``before`` and ``after``: the cursor of the table around the merge."""
    own = zlib.crc32(table.encode())
    return (before + own) // WINDOWS < (after + own) // WINDOWS
