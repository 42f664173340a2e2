"""The place in time of a timestamp of SQLite, which stores it as the text that a program writes.

The texts of one moment differ: ``2026-01-31 10:00:00``, ``2026-01-31T10:00:00.000Z``. They are neither compared nor
sorted as they are, but in one form, which a function of ours in the session computes. Pure.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

WALL_TIME = "cdc_wall_time"
"""The function's name in SQL."""

KNOWN_FORM = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|\+00:00)?", re.ASCII)
DIGITS = 6
DAY = timedelta(days=1)


@lru_cache(maxsize=1024)
def wall_time(stored: object, offset_s: int) -> str | None:
    """``stored`` in the form that is compared; None if it has no known form. A text with a zone is in UTC, others have
    the offset of ``time_zone``. A query asks several times for each row."""
    found = KNOWN_FORM.fullmatch(stored) if isinstance(stored, str) else None
    if found is None:
        return None
    day, time, fraction, zone = found.groups()
    microsecond = int((fraction or "")[:DIGITS].ljust(DIGITS, "0"))
    try:
        moment = datetime.fromisoformat(f"{day} {time}").replace(microsecond=microsecond)
        return compared(moment + timedelta(seconds=offset_s) if zone else moment)
    except (ValueError, OverflowError):
        return None


def compared(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def texts_around(since: datetime, upto: datetime) -> tuple[str, str]:
    """The least and the greatest text, by which an index finds all known forms of the moments. Those with a zone differ
    by less than a day."""
    return f"{(since - DAY).date()}", f"{(upto + 2 * DAY).date()}"
