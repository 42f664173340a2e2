"""SOQL queries over one object. Names come from ``describe``, and are checked before they enter a query."""

from __future__ import annotations

import re

from airflow_cdc_provider.core.table.schema import TableSchema

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,254}")


def select(schema: TableSchema, where: str = "") -> str:
    """All columns, without ORDER BY and LIMIT, which would prevent a parallel bulk query."""
    query = f"SELECT {', '.join(map(checked_name, schema.names))} FROM {checked_name(schema.table)}"
    return f"{query} WHERE {where}" if where else query


def checked_name(text: str) -> str:
    """Raises ValueError if the text is no name of an object or field."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an object or field")
    return text
