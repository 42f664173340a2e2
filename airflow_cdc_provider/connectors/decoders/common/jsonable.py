"""Values of binary files as JSON values. Pure."""

from __future__ import annotations

from base64 import b64encode
from datetime import date, datetime, time
from typing import Any


def jsonable(value: Any) -> Any:
    """Bytes as base64, times as ISO text, NaN and infinities as text."""
    match value:
        case dict():
            return {str(name): jsonable(member) for name, member in value.items()}
        case list() | tuple():
            return [*map(jsonable, value)]
        case bytes():
            return base64_of(value)
        case float():
            return number_or_text(value)
        case date() | datetime() | time():
            return value.isoformat()
        case _:
            return value


def base64_of(content: bytes) -> str:
    return b64encode(content).decode("ascii")


def number_or_text(value: float) -> float | str:
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else "Infinity" if value > 0 else "-Infinity"
