"""The names of columns in BigQuery."""

from __future__ import annotations

import re

LONGEST = 300
LONGEST_TABLE = 1_024
"""In bytes; columns in characters."""

OTHER = re.compile(r"[^\w -]")
RESERVED = (
    "_TABLE_",
    "_FILE_",
    "_PARTITION",
    "_ROW_TIMESTAMP",
    "__ROOT__",
    "_COLIDENTIFIER",
    "_CHANGE_SEQUENCE_NUMBER",
    "_CHANGE_TYPE",
    "_CHANGE_TIMESTAMP",
)
"""Prefixes of column names that BigQuery rejects, in any case."""


def column_name(name: str) -> str:
    """The name with ``_`` for every character that BigQuery does not allow, and before a leading digit."""
    allowed = OTHER.sub("_", name)
    return f"_{allowed}" if allowed[:1].isdigit() else allowed


def is_table_name(name: str) -> bool:
    return not OTHER.search(name) and len(name.encode()) <= LONGEST_TABLE


def same_name(one: str, other: str) -> bool:
    """Whether BigQuery would give two columns the same name."""
    return column_name(one).lower() == column_name(other).lower()


def is_reserved(name: str) -> bool:
    return column_name(name).upper().startswith(RESERVED)


def quoted(*names: str) -> str:
    """A path of names that contain no backtick."""
    return ".".join(f"`{name}`" for name in names)
