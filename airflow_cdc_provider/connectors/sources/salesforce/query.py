"""SOQL queries over one object. Names come from ``describe``, and are checked before they enter a query.

A record exists until it is deleted. Only ``queryAll`` also returns archived records, which exist, and those in the
recycle bin, which do not. So every query of records is a ``queryAll``, and a copy leaves out what is deleted.
"""

from __future__ import annotations

import re

from airflow_cdc_provider.connectors.sources.salesforce.types import IS_DELETED
from airflow_cdc_provider.core.table.schema import TableSchema

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,254}")


def select(schema: TableSchema, where: str = "") -> str:
    """All columns, without ORDER BY and LIMIT, which would prevent a parallel bulk query."""
    query = f"SELECT {', '.join(map(checked_name, schema.names))} FROM {checked_name(schema.table)}"
    return f"{query} WHERE {where}" if where else query


def existing(described: TableSchema) -> str:
    """The condition of the records that exist; empty for an object without recycle bin."""
    return f"{IS_DELETED} = false" if IS_DELETED in described.names else ""


def checked_name(text: str) -> str:
    """Raises ValueError if the text is no name of an object or field."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an object or field")
    return text
