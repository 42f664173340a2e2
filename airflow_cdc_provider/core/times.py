"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_utc(text: str) -> datetime:
    """A time in ISO 8601 format; UTC if it has no zone. Raises ValueError for other text."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
