"""The names of copies.

A copy has the name of its source table, and in a target that is not called ``default`` the name of the target, too:
``<table>@<target>``. A history beside a copy has the name of the copy and ``:history``.

Every copy has a target table, a control record, a state and a lease of its own, all under its name. What the source and
the change log have is under the name of the source table.
"""

from __future__ import annotations

import re

HISTORY = ":history"
DEFAULT_TARGET = "default"
IN_TARGET = re.compile(r"@([a-z][a-z0-9_]{0,49})\Z")


def copy_name(table: str, target: str) -> str:
    """The name of the copy of a source table in a target."""
    return table if target == DEFAULT_TARGET else f"{table}@{target}"


def history_name(copy: str) -> str:
    """The name of the history beside a copy."""
    return f"{copy}{HISTORY}"


def in_target(copy: str, target: str) -> str:
    """The name of a copy, or of its history, in another target."""
    other = copy_name(source_table(copy), target)
    return history_name(other) if copy.endswith(HISTORY) else other


def source_table(copy: str) -> str:
    return IN_TARGET.sub("", copy.removesuffix(HISTORY))


def target_of_copy(copy: str) -> str:
    """The name of its target."""
    match = IN_TARGET.search(copy.removesuffix(HISTORY))
    return match[1] if match else DEFAULT_TARGET
