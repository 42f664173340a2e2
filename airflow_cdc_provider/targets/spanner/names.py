"""Names of tables and columns. A name in Spanner starts with a letter and has letters, digits and underscores."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import groupby

from airflow_cdc_provider.core.errors import CheckFailed, Problem

LONGEST_NAME = 128

CONTROL, PARTS, CUT = "cdc_control", "cdc_parts", "cdc_cut"
"""Our own tables: the control rows, the parts of batches that exceed one transaction, and the published cuts."""

ROW, COPY = "cdc_row", "cdc_copy"
"""The primary key of a table without a key: the hash of the row, and a text that distinguishes equal rows."""

MARKER = "cdc_copy_"
"""A check constraint of each copy has this name with the identity of the copy. It stays with the table when that is
renamed; Spanner's tables have neither a comment nor an id of their own."""

COPIED, REPLACED = "c", "o"
"""Kinds of staging tables: a new copy, and the old copy that a new one replaced."""


def is_name(name: str) -> bool:
    return re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None and len(name) <= LONGEST_NAME


def quoted(name: str) -> str:
    """For statements, in which quoted names have no escapes. Raises CheckFailed (TGT056)."""
    if not is_name(name):
        raise CheckFailed(not_a_name(name, name))
    return f"`{name}`"


def not_a_name(table: str, name: str) -> Problem:
    allowed = f"a letter, then letters, digits and underscores; {LONGEST_NAME} characters"
    do = "choose another name in tables.target"
    return Problem("TGT056", "a name of a table is not possible in Spanner", table, name, allowed, do)


def column_name(name: str) -> str:
    """The column's name in Spanner: ``_cdc_order`` → ``cdc_order``, ``unit price`` → ``unit_price``, ``2nd`` →
    ``c_2nd``."""
    plain = re.sub("[^A-Za-z0-9_]", "_", name).lstrip("_")
    return plain if plain[:1].isalpha() else f"c_{plain}"


def same_names(names: Iterable[str]) -> list[tuple[str, ...]]:
    """The groups of source columns that would get one name, in which Spanner ignores case."""
    ordered = sorted(names, key=_folded)
    groups = (tuple(group) for _, group in groupby(ordered, _folded))
    return [group for group in groups if len(group) > 1]


def staging_prefix(target_table: str) -> str:
    return f"cdc_{_digest(target_table)}_"


def staging_table(target_table: str, kind: str, identity: str) -> str:
    return f"{staging_prefix(target_table)}{kind}_{_digest(identity)}"


def _folded(name: str) -> str:
    return column_name(name).lower()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
