"""Names and literals as Spark SQL spells them, and the technical columns of a target table."""

from __future__ import annotations

import re

ORDER = "_cdc_order"
DELETED = "_cdc_deleted"
RESERVED_PREFIX = "_cdc_"

NEEDS_COLUMN_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Parquet field names may not hold; Delta takes them only under column mapping."""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string literal. Spark's parser knows backslash escapes, so the backslash goes first."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def path_table(path: str) -> str:
    return f"delta.{quoted(path)}"


def default_name(source_table: str) -> str:
    """``public.Orders`` → ``orders``, ``sales.Orders`` → ``sales_orders``: lower case, ``public`` dropped, all but
    letters and digits turned into ``_``."""
    schema, _, table = source_table.rpartition(".")
    name = table if schema in ("", "public") else f"{schema}_{table}"
    return re.sub(r"[^a-z0-9_]", "_", name.lower())
