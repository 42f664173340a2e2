"""Default names of target tables."""

from __future__ import annotations

import re

from airflow_cdc_provider.core.table.source_names import parts_of


def default_name(source_table: str) -> str:
    """``public.Orders`` → ``orders``, ``sales.Orders`` → ``sales_orders``: lower case, without ``public``, all but
    letters and digits replaced by ``_``."""
    *schema, table = parts_of(source_table)
    name = table if schema in ([], ["public"]) else "_".join((*schema, table))
    return re.sub(r"[^a-z0-9_]", "_", name.lower())
