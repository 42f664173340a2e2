"""The name a source table gets in a target where the YAML gives none."""

from __future__ import annotations

import re


def default_name(source_table: str) -> str:
    """``public.Orders`` → ``orders``, ``sales.Orders`` → ``sales_orders``: lower case, ``public`` dropped, all but
    letters and digits turned into ``_``."""
    schema, _, table = source_table.rpartition(".")
    name = table if schema in ("", "public") else f"{schema}_{table}"
    return re.sub(r"[^a-z0-9_]", "_", name.lower())
