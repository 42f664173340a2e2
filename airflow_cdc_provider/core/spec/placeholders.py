"""Placeholders in texts of the YAML: ``{name}``. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def unknown_placeholders(text: str, known: Collection[str]) -> list[str]:
    return [name for name in PLACEHOLDER.findall(text) if name not in known]
