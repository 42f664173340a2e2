"""Queries over one object. Names come from ``describe``; that they are names is checked all the same."""

from __future__ import annotations

import re

from airflow_cdc_provider.core.table.schema import TableSchema

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,254}")


def select(schema: TableSchema, where: str = "") -> str:
    """All columns, unordered and without a limit: either would keep a bulk query from reading in parallel."""
    query = f"SELECT {', '.join(map(name, schema.names))} FROM {name(schema.table)}"
    return f"{query} WHERE {where}" if where else query


def name(text: str) -> str:
    """Raises ValueError where the text is no name of an object or field."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an object or field")
    return text
