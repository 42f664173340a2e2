"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """In ISO 8601 format, with milliseconds."""
    return utc_text(datetime.now(UTC))


def utc_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def parse_utc(text: str) -> datetime:
    """A time in ISO 8601 format; UTC if it has no zone. Raises ValueError for other text."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
