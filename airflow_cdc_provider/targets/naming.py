"""Default names of target tables."""

from __future__ import annotations

import re


def default_name(source_table: str) -> str:
    """``public.Orders`` → ``orders``, ``sales.Orders`` → ``sales_orders``: lower case, without ``public``, all but
    letters and digits replaced by ``_``."""
    schema, _, table = source_table.rpartition(".")
    name = table if schema in ("", "public") else f"{schema}_{table}"
    return re.sub(r"[^a-z0-9_]", "_", name.lower())
