"""The names of copies. A source table has one copy, which bears its name, and perhaps a history beside it.

Every copy has a target table, a control record, a state and a lease of its own, all under its name. What the source and
the change log have is under the name of the source table.
"""

from __future__ import annotations

HISTORY = ":history"


def history_name(table: str) -> str:
    """The name of the history beside the copy of a source table."""
    return f"{table}{HISTORY}"


def source_table(copy: str) -> str:
    return copy.removesuffix(HISTORY)
