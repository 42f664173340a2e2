"""Values as text, of a driver, of the change log, or of a lake."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any


def plain(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(int(value))
        case bytes():
            return b64encode(value).decode()
        case Decimal():
            return f"{value:f}"
        case float():
            return str(value).replace("nan", "NaN").replace("inf", "Infinity")
        case datetime() if value.tzinfo is not None:
            return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


def row(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: plain(value) for name, value in values.items()}
