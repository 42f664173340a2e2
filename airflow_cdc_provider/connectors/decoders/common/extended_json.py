"""MongoDB's extended JSON as JSON. Pure.

Its older form, which Debezium's connector still writes, contains numbers that JSON does not allow: ``{"v": NaN}``. The
canonical form has objects for them: ``{"v": {"$numberDouble": "NaN"}}``.
"""

from __future__ import annotations

import re

STRING_OR_NON_FINITE = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


def as_json(text: str) -> str:
    """Valid JSON is returned unchanged."""
    if "NaN" not in text and "Infinity" not in text:
        return text
    return STRING_OR_NON_FINITE.sub(_canonical, text)


def _canonical(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else f'{{"$numberDouble":"{match[0]}"}}'
