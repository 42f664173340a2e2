"""MongoDB's extended JSON as JSON. Pure.

Its older form, which Debezium's connector still writes, has numbers that JSON does not know: ``{"v": NaN}``. The
canonical form has objects for them: ``{"v": {"$numberDouble": "NaN"}}``.
"""

from __future__ import annotations

import re

TEXT_OR_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


def as_json(text: str) -> str:
    """What is JSON already stays as it is."""
    if "NaN" not in text and "Infinity" not in text:
        return text
    return TEXT_OR_NO_NUMBER.sub(_told, text)


def _told(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else f'{{"$numberDouble":"{found[0]}"}}'
