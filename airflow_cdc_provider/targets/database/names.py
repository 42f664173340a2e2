"""Tables of ours beside the copies, and the text in a copy's comment that says which copy it is."""

from __future__ import annotations

import hashlib
import re

CONTROL = "_cdc_control"
"""One row per copy: cursor, fence and the whole control record."""

LOADS = "_cdc_loads"
"""One row per share of a staging table that has been loaded: whoever loads it again finds it and leaves it."""

CUT, PUBLISHED = "_cdc_cut", "_cdc_published"
"""At which cursors the tables stood together, and the view that says whether they still do."""

STAGED, COPIED, REPLACED = "s", "c", "o"
"""What a staging table holds: rows to merge, a new copy, or the copy that a new one has replaced."""

ROW = "_cdc_row"
"""Column of staged rows without key: the text by which they are told apart, computed once and not per row they meet."""

MARK = re.compile(r"cdc:([0-9a-f]{32})")


def staging_prefix(target_table: str) -> str:
    """Begins the name of every staging table of one target table; short, since names end at 63 bytes."""
    return f"_cdc_{hashlib.sha256(target_table.encode()).hexdigest()[:12]}_"


def staging_table(target_table: str, kind: str, attempt: str) -> str:
    return f"{staging_prefix(target_table)}{kind}_{hashlib.sha256(attempt.encode()).hexdigest()[:12]}"


def comment(identity: str) -> str:
    return f"cdc:{identity}"


def identity_in(text: str) -> str:
    """The identity that a table's comment names, empty where it names none. Other words may stand beside it."""
    found = MARK.search(text)
    return found[1] if found else ""
