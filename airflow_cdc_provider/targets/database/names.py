"""Names of our own tables beside the copies, and the table comment that identifies a copy."""

from __future__ import annotations

import hashlib
import re

CONTROL = "_cdc_control"
"""One row per copy: cursor, fence and the whole control record. A row without identity only serves as a lock."""

LOCK = "_cdc_lock"
"""An empty table whose lock is that of the creation of our own tables."""

LOADS = "_cdc_loads"
"""One row per partition of a staging table that has been loaded, so that a task that runs twice loads it once."""

CUT, PUBLISHED = "_cdc_cut", "_cdc_published"
"""The cursors at which the tables were consistent, and the view that shows whether they still are."""

STAGED, COPIED, REPLACED = "s", "c", "o"
"""Kinds of staging tables: rows to merge, a new copy, and the old copy that a new one replaced."""

ROW = "_cdc_row"
"""Column of staged rows without key: the row as text, computed once for all comparisons."""

SHARED = " shared"
"""Behind the identity in the comment of a table with several copies."""

IDENTITY_COMMENT = re.compile(r"cdc:([0-9a-f]{32})")


def own_control_table(target_table: str) -> str:
    """The control table of one target table, where tables do not share one."""
    return f"{CONTROL}_{hashlib.sha256(target_table.encode()).hexdigest()[:12]}"


def own_lock_table(target_table: str) -> str:
    """The empty table whose lock is the lock of one target table, where only tables can be locked."""
    return f"{LOCK}_{hashlib.sha256(target_table.encode()).hexdigest()[:12]}"


def staging_prefix(target_table: str) -> str:
    """Prefix of the staging tables of one target table; short, since PostgreSQL's names end at 63 bytes."""
    return f"_cdc_{hashlib.sha256(target_table.encode()).hexdigest()[:12]}_"


def staging_table(target_table: str, kind: str, nonce: str) -> str:
    """``nonce``: that of the commit, so that no two commits have a table in common."""
    return f"{staging_prefix(target_table)}{kind}_{hashlib.sha256(nonce.encode()).hexdigest()[:12]}"


def copy_name(target_table: str, table: str, shared: bool) -> str:
    """The name of a copy in our own tables: that of its target table, unless others share that. Not longer than the
    name of a table."""
    if not shared:
        return target_table
    return f"{target_table[:80]}#{hashlib.sha256(f'{target_table} {table}'.encode()).hexdigest()[:12]}"


def comment(identity: str, shared: bool = False) -> str:
    return f"cdc:{identity}{SHARED if shared else ''}"


def new_comment(before: str, new: str) -> str:
    """The comment of a copy that replaces a table: ``new``, with the other text of the comment before."""
    match = IDENTITY_COMMENT.search(before)
    if match is None:
        return f"{before} {new}" if before else new
    return before[: match.start()] + new + before[match.end() :].removeprefix(SHARED)


def key_index(target_table: str, identity: str) -> str:
    """The name of the key of a copy, or of the index in its place: below PostgreSQL's limit of 63 bytes."""
    return f"{target_table.encode()[:40].decode(errors='ignore')}_{identity[:8]}_key"


def is_shared(text: str) -> bool:
    """Whether several copies are in the table with this comment."""
    match = IDENTITY_COMMENT.search(text)
    return match is not None and text[match.end() :].startswith(SHARED)


def identity_in(text: str) -> str:
    """The identity in a table's comment, which may contain other text; empty if there is none."""
    match = IDENTITY_COMMENT.search(text)
    return match[1] if match else ""
