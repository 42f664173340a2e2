"""Dates and times outside the years 1 to 9999, as text. Pure.

ISO 8601 with a sign and at least four digits of the year: ``+10000-01-01``, ``-0043-03-15`` (44 BC). The calendar is
proleptic Gregorian, as in all sources that send dates as numbers.
"""

from __future__ import annotations

from datetime import date

DAY_US = 86_400_000_000
CYCLE_DAYS = 146_097
CYCLE_YEARS = 400
"""The period of the Gregorian calendar."""

FIRST = date(2000, 1, 1)
FIRST_DAYS = (FIRST - date(1970, 1, 1)).days


def far_date(days: int) -> str:
    """``days`` since 1970-01-01."""
    cycles, rest = divmod(days - FIRST_DAYS, CYCLE_DAYS)
    within = date.fromordinal(FIRST.toordinal() + rest)
    year = within.year + cycles * CYCLE_YEARS
    return f"{'-' if year < 0 else '+'}{abs(year):04d}-{within.month:02d}-{within.day:02d}"


def far_moment(us: int) -> str:
    """``us``: microseconds since 1970-01-01 00:00."""
    days, rest = divmod(us, DAY_US)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    tail = f".{fraction:06d}" if fraction else ""
    return f"{far_date(days)}T{hour:02d}:{minute:02d}:{second:02d}{tail}"
