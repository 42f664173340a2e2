"""Dates and times given as numbers or ISO text, as canonical JSON. Pure.

Values that no target type can store raise UnrepresentableValue. Digits below a microsecond are truncated with a warning
in the record; in a key they are rejected (``images.RowImages``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import WRONG_TIME, DecodeError, UnrepresentableValue
from airflow_cdc_provider.connectors.decoders.common.far_times import far_date, far_moment
from airflow_cdc_provider.connectors.unrepresentable import INFINITE, OTHER_YEAR

Warn = Callable[[str], object]

EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1).toordinal()
LAST_DAY = date.max.toordinal()
FIRST_US = -62_135_596_800_000_000
LAST_US = 253_402_300_799_999_999
INFINITE_US = frozenset({9_223_372_036_825_200_000, -9_223_372_036_832_400_000})
"""What PostgreSQL connectors send for ±infinity, in microseconds; in milliseconds, a thousandth of it."""

NANOSECONDS_CUT = "nanoseconds_cut"
LONG_YEAR = re.compile(r"([+-])\d{5,}-\d\d-\d\d|-\d{4}-\d\d-\d\d")


def require_integer(value: Any) -> int:
    if type(value) is not int:
        raise DecodeError(WRONG_TIME, "a time that is not an integer")
    return value


def date_of_days(days: int, warn: Warn) -> str:
    ordinal = require_integer(days) + EPOCH_DAY
    if 1 <= ordinal <= LAST_DAY:
        return f'"{date.fromordinal(ordinal).isoformat()}"'
    raise UnrepresentableValue(OTHER_YEAR, far_date(days))


def timestamp_of_us(us: int, warn: Warn, zone: str = "") -> str:
    if FIRST_US <= require_integer(us) <= LAST_US:
        return f'"{(EPOCH + timedelta(microseconds=us)).isoformat()}{zone}"'
    if us in INFINITE_US or us * 1000 in INFINITE_US:
        raise UnrepresentableValue(INFINITE, "infinity" if us > 0 else "-infinity")
    raise UnrepresentableValue(OTHER_YEAR, far_moment(us) + zone)


def timestamp_of_ms(ms: int, warn: Warn, zone: str = "") -> str:
    us = require_integer(ms) * 1000
    return timestamp_of_us(us, warn, zone)


def timestamp_of_ns(ns: int, warn: Warn, zone: str = "") -> str:
    us, rest = divmod(require_integer(ns), 1000)
    if rest:
        warn(NANOSECONDS_CUT)
    return timestamp_of_us(us, warn, zone)


def time_of_us(us: int, warn: Warn | None = None) -> str:
    """``12:34:56.123456`` without trailing zeros. MySQL times range from -838:59:59 to 838:59:59."""
    sign = "-" if require_integer(us) < 0 else ""
    seconds, fraction = divmod(abs(us), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f'"{sign}{hour:02d}:{minute:02d}:{second:02d}{tail}"'


def time_of_ms(ms: int, warn: Warn) -> str:
    return time_of_us(require_integer(ms) * 1000)


def time_of_ns(ns: int, warn: Warn) -> str:
    us, rest = divmod(require_integer(ns), 1000)
    if rest:
        warn(NANOSECONDS_CUT)
    return time_of_us(us)


def date_of_text(text: Any, warn: Warn) -> str:
    """``2024-02-29``, with an optional ``Z`` and an optional time of day, which must be midnight."""
    _require_in_calendar(text)
    day, _, rest = text.removesuffix("Z").partition("T")
    try:
        if rest.strip("0:."):
            raise ValueError(rest)
        return f'"{date.fromisoformat(day).isoformat()}"'
    except ValueError as error:
        raise DecodeError(WRONG_TIME, "not a date") from error


def timestamp_of_text(text: Any, warn: Warn) -> str:
    """A time without zone; a trailing ``Z`` is ignored. Raises DecodeError for another zone."""
    _require_in_calendar(text)
    moment = _parse_datetime(text, warn)
    if moment.utcoffset():
        raise DecodeError(WRONG_TIME, "a time with a zone, in a column without")
    return f'"{moment.replace(tzinfo=None).isoformat()}"'


def timestamptz_of_text(text: Any, warn: Warn) -> str:
    """Raises DecodeError if the text has no zone."""
    _require_in_calendar(text)
    moment = _parse_datetime(text, warn)
    if moment.tzinfo is None:
        raise DecodeError(WRONG_TIME, "a time without zone")
    try:
        return f'"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"'
    except OverflowError:
        raise UnrepresentableValue(OTHER_YEAR, text) from None


@lru_cache(maxsize=64)
def datetime_of_us(us: int) -> datetime | None:
    """For display; None outside the years 1 to 9999. Cached, since the changes of a transaction share their time."""
    return EPOCH_UTC + timedelta(microseconds=us) if FIRST_US <= us <= LAST_US else None


def _parse_datetime(text: str, warn: Warn) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise DecodeError(WRONG_TIME, "not a time") from error
    _, point, fraction = text.partition(".")
    digits = len(fraction) - len(fraction.lstrip("0123456789")) if point else 0
    if digits > 6 and fraction[6:digits].strip("0"):
        warn(NANOSECONDS_CUT)
    return moment


def _require_in_calendar(text: Any) -> None:
    if not isinstance(text, str):
        raise DecodeError(WRONG_TIME, "a time that is not a string")
    if text in ("infinity", "-infinity"):
        raise UnrepresentableValue(INFINITE, text)
    if LONG_YEAR.match(text):
        raise UnrepresentableValue(OTHER_YEAR, text)
