"""Formats of texts in a definition: names, connection ids, locations, cron expressions, durations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from croniter import croniter

from airflow_cdc_provider.core.spec import notifications
from airflow_cdc_provider.core.spec.placeholders import PLACEHOLDER, unknown_placeholders
from airflow_cdc_provider.core.spec.routing import PLACEHOLDERS
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX
from airflow_cdc_provider.core.storage import locations
from airflow_cdc_provider.core.table.schema import Kind, parse_type

RESERVED_NAMES = frozenset(
    {"dags", "con", "prn", "aux", "nul", "log", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
)
PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = timedelta(days=3650)
CASTS = sorted(set(Kind) - {Kind.DECIMAL, Kind.BYTES})
DURATION = r"^[1-9][0-9]{0,8}[smhd]$"


@dataclass(frozen=True)
class TextFormat:
    """``check`` returns why a text that matches ``pattern`` is invalid, or an empty string."""

    code: str
    allowed: str
    pattern: str = ""
    check: Callable[[str], str] = lambda text: ""

    def error(self, text: str) -> str:
        """Why ``text`` is invalid; empty if it is valid."""
        if self.pattern and not re.fullmatch(self.pattern, text):
            return "invalid format"
        return self.check(text)


def _name(text: str) -> str:
    return "a reserved name" if text in RESERVED_NAMES else ""


def _table(text: str) -> str:
    return "a reserved prefix" if text.lower().startswith(RESERVED_PREFIX) else ""


def _target(text: str) -> str:
    if error := _names_of(PLACEHOLDERS)(text):
        return error
    rest = PLACEHOLDER.sub("", text)
    return "a brace without its counterpart" if set(rest) & set("{}") else _table(text)


def _names_of(known: Collection[str]) -> Callable[[str], str]:
    """A check of the placeholders of a text."""

    def check(text: str) -> str:
        unknown = unknown_placeholders(text, known)
        return f"unknown placeholder {{{unknown[0]}}}" if unknown else ""

    return check


def _cast(text: str) -> str:
    try:
        return "" if parse_type(text).kind is not Kind.BYTES else "no value can be cast to bytes"
    except ValueError:
        return "no such type"


def _cron(text: str) -> str:
    if text in PRESETS:
        return ""
    if text.startswith("@"):
        return "no such preset"
    fields = len(text.split())
    if fields > 5:
        return f"{fields} fields: the shortest interval is 60 seconds"
    words = set(re.findall("[A-Z]+", text.upper()))
    if not re.fullmatch(r"[0-9*/,\-\sA-Za-z]+", text) or words - {*MONTHS, *WEEKDAYS} or not croniter.is_valid(text):
        return "not a cron expression"
    try:
        croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next()
    except ValueError:
        return "a date that does not exist"
    return ""


FORMS: dict[str, TextFormat] = {
    "name": TextFormat(
        "DEF013",
        "a letter, then letters, digits and `_`, all lower-case, at most 50; not " + ", ".join(sorted(RESERVED_NAMES)),
        r"^[a-z][a-z0-9_]{0,49}$",
        _name,
    ),
    "table": TextFormat(
        "DEF013",
        f"a letter, then letters, digits and `_`, at most 100; not starting with {RESERVED_PREFIX}",
        r"^[A-Za-z][A-Za-z0-9_]{0,99}$",
        _table,
    ),
    "connection": TextFormat(
        "DEF013",
        "an Airflow connection id: letters, digits and `_ . : -`",
        r"^[A-Za-z0-9_][A-Za-z0-9_.:\-]{0,249}$",
    ),
    "iam_role": TextFormat(
        "DEF013", "`default`, or the ARN of a role", r"^(default|arn:aws[a-z\-]*:iam::[0-9]{12}:role/[\w+=,.@/\-]+)$"
    ),
    "location": TextFormat("DEF047", locations.ALLOWED, locations.PATTERN, locations.location_error),
    "stage": TextFormat(
        "DEF013",
        "one name, or three with points between them",
        r"^[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*\.[A-Za-z_][\w$]*)?$",
    ),
    "stream": TextFormat(
        "DEF013",
        "projects/PROJECT/locations/LOCATION/streams/STREAM",
        r"^projects/[a-z0-9.:\-]+/locations/[a-z0-9\-]+/streams/[a-z0-9\-]+$",
    ),
    "cron": TextFormat(
        "DEF016",
        "five fields: minute hour day month weekday; or one of " + ", ".join(PRESETS),
        check=_cron,
    ),
    "tag": TextFormat("DEF013", "1 to 100 characters", r"^.{1,100}$"),
    "asset": TextFormat(
        "DEF013", "the name of an Airflow asset: 1 to 1,500 characters of ASCII", r"^[!-~]([ -~]{0,1498}[!-~])?$"
    ),
    "filter": TextFormat("DEF027", "a list of {column, op, value}; SQL text is not allowed"),
    "cast": TextFormat("DEF055", "`decimal(precision,scale)`, " + ", ".join(CASTS), check=_cast),
    "column": TextFormat(
        "DEF013", f"1 to 100 printable characters; not starting with {RESERVED_PREFIX}", r"^[^`\"]{1,100}$", _table
    ),
    "characters": TextFormat("DEF046", "a whole number from 0 to 100"),
    "length": TextFormat("DEF046", "a whole number from 1 to 1,000,000"),
    "target": TextFormat(
        "DEF013",
        "a letter, then letters, digits and `_`, at most 100; with placeholders: "
        + ", ".join(f"`{{{name}}}`" for name in PLACEHOLDERS),
        r"^[A-Za-z{][A-Za-z0-9_{}]{0,99}$",
        _target,
    ),
    "shard": TextFormat(
        "DEF013",
        "1 to 200 printable characters; placeholders: " + ", ".join(f"`{{{name}}}`" for name in PLACEHOLDERS),
        r"^[^\x00-\x1f]{1,200}$",
        _names_of(PLACEHOLDERS),
    ),
    "percent": TextFormat(
        "DEF091", "50% to 100%, with at most three decimals: `99.5%`", r"^(100|[5-9][0-9](\.[0-9]{1,3})?)%$"
    ),
    "notifier": TextFormat(
        "DEF090",
        "the import path of a notifier: `package.module.Class`",
        r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$",
    ),
    "message": TextFormat(
        "DEF090",
        "text; placeholders: " + ", ".join(f"`{{{name}}}`" for name in notifications.PLACEHOLDERS),
        check=_names_of(notifications.PLACEHOLDERS),
    ),
    "spark": TextFormat("DEF030", "a mapping of Spark settings"),
    "version": TextFormat("DEF012", "1; a higher version requires a newer airflow-cdc-provider"),
}


def duration(text: str) -> timedelta | None:
    """``7d``, ``10m``, ``30s``, ``2h``; None if the unit is missing, or the length is zero or above ten years."""
    if not re.fullmatch(DURATION, text):
        return None
    length = timedelta(seconds=int(text[:-1]) * SECONDS[text[-1]])
    return length if length <= LONGEST else None
