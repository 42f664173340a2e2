"""Keys that the YAML declares: they must identify a row, by what the catalog of the source says. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem

KEY_NOT_UNIQUE = "SRC170"


def declared_key_problem(task: TableTask, unique_keys: Sequence[Sequence[str]], statements: str) -> Problem | None:
    """``unique_keys``: the columns of each unique index of the table, if none of them may be NULL. Rows with equal keys
    would overwrite each other in the copy. ``statements``: make the key such an index."""
    key = task.rule.key
    if not key or any(set(columns) <= set(key) for columns in unique_keys):
        return None
    existing = " or ".join(f"({', '.join(columns)})" for columns in unique_keys)
    return Problem(
        KEY_NOT_UNIQUE,
        f"the `key` of {task.source_table} does not identify a row",
        task.source_table,
        f"({', '.join(key)}): no unique index has only columns of it that are NOT NULL",
        f"columns with {existing}, or no `key`" if existing else "columns of such an index, or no `key`",
        statements,
    )
