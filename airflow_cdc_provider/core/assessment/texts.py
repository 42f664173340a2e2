"""Estimates as text."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: int | None) -> str:
    """Empty if it is unknown."""
    if size is None:
        return ""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:,.0f} {UNITS[unit]}"


def duration_text(seconds: float | None) -> str:
    """In whole seconds below two minutes, else in minutes or hours. Empty if it is unknown."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
