"""What a copy keeps of the earlier rows of its table."""

from __future__ import annotations

from enum import StrEnum


class History(StrEnum):
    """``none``: the rows as they are now. ``scd2``: every version of each row, with the time in which it was valid.
    ``log``: every change."""

    NONE = "none"
    SCD2 = "scd2"
    LOG = "log"
